"""Places to time zones: cities in English, Korean and Chinese, IANA names, and offsets such as UTC+9."""

import difflib
import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

__all__ = ["zone_of"]

# zone: names beside the last part of the zone's own name, which is always known
_NAMES = {
    "Africa/Cairo": "egypt 카이로 이집트 开罗 埃及",
    "Africa/Johannesburg": "cape_town south_africa 요하네스버그 约翰内斯堡 南非",
    "Africa/Lagos": "nigeria 라고스 拉各斯",
    "Africa/Nairobi": "kenya 나이로비 内罗毕",
    "America/Chicago": "houston dallas austin cst 시카고 芝加哥",
    "America/Los_Angeles": "la san_francisco seattle california pst 로스앤젤레스 시애틀 洛杉矶 旧金山 西雅图",
    "America/Mexico_City": "mexico 멕시코시티 墨西哥城",
    "America/New_York": "nyc boston washington miami est 뉴욕 보스턴 워싱턴 纽约 波士顿 华盛顿",
    "America/Sao_Paulo": "brazil rio 상파울루 브라질 圣保罗 巴西",
    "America/Toronto": "ottawa montreal 토론토 多伦多",
    "America/Vancouver": "밴쿠버 温哥华",
    "Asia/Bangkok": "thailand 방콕 태국 曼谷 泰国",
    "Asia/Dubai": "abu_dhabi 두바이 迪拜",
    "Asia/Ho_Chi_Minh": "hanoi vietnam saigon 하노이 호치민 베트남 河内 胡志明市 越南",
    "Asia/Hong_Kong": "홍콩 香港",
    "Asia/Jakarta": "indonesia 자카르타 雅加达",
    "Asia/Kolkata": "india delhi new_delhi mumbai bangalore ist 인도 뉴델리 델리 뭄바이 印度 德里 新德里 孟买",
    "Asia/Manila": "philippines 마닐라 马尼拉",
    "Asia/Seoul": "korea south_korea busan kst 서울 한국 부산 首尔 首爾 汉城 韩国 釜山",
    "Asia/Shanghai": "beijing china shenzhen guangzhou 상하이 베이징 북경 중국 선전 北京 上海 中国 深圳 广州",
    "Asia/Singapore": "싱가포르 新加坡",
    "Asia/Taipei": "taiwan 타이베이 대만 台北 台湾",
    "Asia/Tokyo": "japan osaka kyoto jst 도쿄 동경 일본 오사카 东京 東京 日本 大阪",
    "Australia/Sydney": "canberra 시드니 悉尼 雪梨",
    "Europe/Amsterdam": "netherlands 암스테르담 阿姆斯特丹",
    "Europe/Berlin": "germany munich frankfurt hamburg 베를린 독일 뮌헨 柏林 德国 慕尼黑",
    "Europe/Istanbul": "turkey 이스탄불 伊斯坦布尔",
    "Europe/London": "england uk britain 런던 영국 伦敦 英国",
    "Europe/Madrid": "spain barcelona 마드리드 스페인 马德里 西班牙",
    "Europe/Moscow": "russia 모스크바 러시아 莫斯科 俄罗斯",
    "Europe/Paris": "france cet 파리 프랑스 巴黎 法国",
    "Europe/Rome": "italy milan 로마 이탈리아 罗马 意大利",
    "Europe/Stockholm": "sweden 스톡홀름 斯德哥尔摩",
    "Europe/Zurich": "switzerland geneva 취리히 스위스 苏黎世 瑞士",
    "Pacific/Auckland": "new_zealand wellington 오클랜드 뉴질랜드 奥克兰 新西兰",
    "Pacific/Honolulu": "hawaii 호놀룰루 하와이 檀香山 夏威夷",
    "UTC": "gmt z utc 세계시 世界时",
}
_OFFSET = re.compile(r"(?:utc|gmt)?([+-])(\d{1,2})(?::?(\d{2}))?")
_HERE = {"", "here", "local", "now", "여기", "这里", "本地"}


def zone_of(place: str) -> tzinfo:
    """The time zone of a place; "" and "here" are the zone of this machine.

    Raises:
        ValueError: nothing is known under that name; the message proposes what is near.
    """
    name = re.sub(r"[\s_]+", "_", place.strip().casefold()).strip("_")
    if name in _HERE:
        return datetime.now().astimezone().tzinfo or UTC
    if offset := _OFFSET.fullmatch(name):
        sign, hours, minutes = offset.groups()
        apart = timedelta(hours=int(hours), minutes=int(minutes or 0))
        if apart < timedelta(hours=24):
            return timezone(apart if sign == "+" else -apart)
    known = _index()
    if zone := known.get(name) or known.get(name.split(",")[0]):
        return ZoneInfo(zone)
    near = difflib.get_close_matches(name, known, n=1)
    hint = (
        f"did you mean {near[0].replace('_', ' ').title()}?"
        if near
        else "give a large city or a zone such as Asia/Seoul"
    )
    raise ValueError(f"no time zone is known for {place!r}; {hint}")


@cache
def _index() -> dict[str, str]:
    """Names in lower case to zones: whole IANA names, their last parts, and the table above, which wins."""
    zones = sorted(available_timezones())
    if not zones:
        raise ValueError("this machine has no time zone data; install it: pip install tzdata")
    index = {zone.rsplit("/", 1)[-1].casefold(): zone for zone in zones if "/" in zone and not zone.startswith("Etc/")}
    index |= {zone.casefold(): zone for zone in zones}
    index |= {name: zone for zone, names in _NAMES.items() for name in names.split()}
    return index
