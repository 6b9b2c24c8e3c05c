# ruff: noqa: E501  the dictionary is cut where its samples are
"""Smaller blobs: deflate with a dictionary of what messages and records always contain.

A message of two hundred characters is stored as four hundred bytes, half of them the names of its fields. Alone it
hardly compresses; with a dictionary those names cost next to nothing. The dictionary is part of the format: never
change it, add another with another tag.
"""

import zlib

TAG = ".z1"  # after the serializer's type tag
_LEAST = 48  # bytes below which nothing is gained
_BIG = 1 << 18  # bytes above which speed counts more

# what is commonest stands last, where references are shortest
_DICTIONARY = (
    b" could should because through between another something without before after again against during while where "
    b"there these those their which would about other first people great right little think under never every world "
    b"still found long down been have this from they were what when your said each will with that know make time year "
    b"some them than then look only come over also back use two how our work well way even new want any give day most "
    b"please thank you can help me with the is a list of the following: I am in on at to it as for and the not are was "
    b"be by or an if do but his her has had who all can't don't I'm it's ing tion ment able ness ly. The . In , and the "
    b"\xbdlangchain_core.messages.modifier\xadRemoveMessage\x86\xa7content\xa0\xb1additional_kwargs\x80\xb1response_metadata"
    b"\x80\xa4type\xa6remove\xb5model_name\xacfinish_reason\xa4stop\xaatool_calls\xaatoken_usage\xb2system_fingerprint"
    b"\xaalogprobs\xa5model\xaemodel_provider\xa6openai\xa9anthropic\xa8end_turn\xa8tool_use\xabservice_tier\xaestop_reason"
    b"\xacinput_tokens\xadoutput_tokens\xactotal_tokens\xb3input_token_details\xaacache_read\xaecache_creation"
    b"\xb4output_token_details\xa9reasoning\x92\xa4text\xa9signature\xa5image\xa6source\xa6base64\xa8mime_type"
    b"\xbelangchain_core.messages.system\xadSystemMessage\x86\xa7content\xb1additional_kwargs\x80\xb1response_metadata\x80"
    b"\xa4type\xa6system\xa4name\xc0\xa2id\xb3model_validate_json"
    b"\xa4args\xa5query\xa4text\xa4path\xa6values\xa5items\xa5title\xa4user\xa5error\xa6result\xa5value"
    b"__agentkit_call__\x85\xa1k\x92\xd9.lc_run--01a22df1-\xa1e\xa7suspend\xa1e\xa3ask\xa1a\x01\xa1t\xcbA\xda\xc3s\xcf"
    b"\x85\xa1k\x92\xd9.lc_run--01a22df1-8a0a-727c-98c5-0\xa6call_1\xa1e\xa5start\xa1a\x01\xa1t\xcbA\xda\xc3s\xcf\xa1s\xb2"
    b"\x81\xd9.lc_run--01a22df1-8a0a-727c-0\xc7\x1d\x00\x93\xa8builtins\xa9frozenset\x91\xa7"
    b"\xc8\x01\x13\x01\x93\xaflanggraph.types\xa4Send\x92\xa5tools\x91\x84\xa4name\xa7\xa4args\x81\xa2id\xa6call_"
    b"\xa4type\xa9tool_call\x81\xa8messages\x91\xc8\x01>\x05\x94\xbdlangchain_core.messages.human\xacHumanMessage\x86"
    b"\xa7content\xd9\xb8\xb1additional_kwargs\x80\xb1response_metadata\x80\xa4type\xa5human\xa4name\xc0\xa2id\xc0"
    b"\xb3model_validate_json\x91\xc8\x01c\x05\x94\xbdlangchain_core.messages.human\xacHumanMessage\x86\xa7content\xd9\xb8"
    b"\xb1additional_kwargs\x80\xb1response_metadata\x80\xa4type\xa5human\xa4name\xc0\xa2id\xd9$\xb3model_validate_json"
    b"\x86\xa1k\x92\xd9.lc_run--01a22df1-8a0a-727c-98c5-0\xa6call_1\xa1e\xa6finish\xa1a\x01\xa1t\xcbA\xda\xc3s\xcf\xa1s\xb2"
    b"\xa1o\x91\xc8\x01\x7f\x05\x94\xbclangchain_core.messages.tool\xabToolMessage\x89\xa7content\xd9\xc8"
    b"\xb1additional_kwargs\x80\xb1response_metadata\x80\xa4type\xa4tool\xa4name\xa7\xa2id\xc0\xactool_call_id\xa6call_"
    b"\xa8artifact\xc0\xa6status\xa5error\xb3model_validate_json\x91\xc8\x01\xa4\x05\x94\xbclangchain_core.messages.tool"
    b"\xabToolMessage\x89\xa7content\xd9\xc8\xb1additional_kwargs\x80\xb1response_metadata\x80\xa4type\xa4tool\xa4name\xa7"
    b"\xa2id\xd9$\xactool_call_id\xa6call_\xa8artifact\xc0\xa6status\xa7success\xb3model_validate_json\x91\xc8\x01\xab\x05"
    b"\x94\xbalangchain_core.messages.ai\xa9AIMessage\x89\xa7content\xd9\xcf\xb1additional_kwargs\x80\xb1response_metadata"
    b"\x80\xa4type\xa2ai\xa4name\xc0\xa2id\xd9.lc_run--01a22df1-0\xaatool_calls\x91\x84\xa4name\xa7\xa4args\x81\xa2id"
    b"\xa6call_\xa4type\xa9tool_call\xb2invalid_tool_calls\x90\xaeusage_metadata\xc0\xb3model_validate_json\xa7content\xa0"
    b"\xb1additional_kwargs\x80\xb1response_metadata\x80\xa4type\xa2ai\xa4name\xc0\xa2id\xd9.lc_run--01a22df1-8a0a-727c-98c5"
    b"-0\xaatool_calls\x90\xb2invalid_tool_calls\x90\xaeusage_metadata\xc0\xb3model_validate_json"
)


def squeeze(tag: str, data: bytes) -> tuple[str, bytes]:
    """The tag and bytes to store: smaller ones, or the same where nothing is gained."""
    if len(data) < _LEAST:
        return tag, data
    packer = zlib.compressobj(6 if len(data) < _BIG else 1, zlib.DEFLATED, -15, zdict=_DICTIONARY)
    packed = packer.compress(data) + packer.flush()
    return (tag + TAG, packed) if len(packed) < len(data) else (tag, data)


def unsqueeze(tag: str, data: bytes) -> tuple[str, bytes]:
    """The tag and bytes as they were."""
    if not tag.endswith(TAG):
        return tag, data
    unpacker = zlib.decompressobj(-15, zdict=_DICTIONARY)
    return tag.removesuffix(TAG), unpacker.decompress(data) + unpacker.flush()
