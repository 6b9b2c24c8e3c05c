from datetime import timedelta, timezone

import pytest

from graphs._units import convert
from graphs._zones import _NAMES, zone_of


@pytest.mark.parametrize(
    ("place", "zone"),
    [
        ("Seoul", "Asia/Seoul"),
        ("서울", "Asia/Seoul"),
        ("首尔", "Asia/Seoul"),
        ("new york", "America/New_York"),
        ("NEW_YORK", "America/New_York"),
        ("asia/seoul", "Asia/Seoul"),
        ("London, UK", "Europe/London"),
        ("Lisbon", "Europe/Lisbon"),
        ("utc", "UTC"),
    ],
)
def test_a_place_has_its_zone_in_three_languages(place, zone):
    assert str(zone_of(place)) == zone


def test_each_name_in_the_table_leads_to_a_zone_that_exists():
    for zone, names in _NAMES.items():
        for name in names.split():
            assert str(zone_of(name)) == zone, name


def test_offsets_are_zones():
    assert zone_of("UTC+9") == timezone(timedelta(hours=9))
    assert zone_of("-05:30") == timezone(-timedelta(hours=5, minutes=30))
    assert zone_of("here") is not None
    with pytest.raises(ValueError, match="no time zone is known"):
        zone_of("UTC+99")


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        (5, "km", "miles", 3.1068559611866697),
        (5, "킬로미터", "마일", 3.1068559611866697),
        (5, "公里", "英里", 3.1068559611866697),
        (1, "Nautical Mile", "m", 1852),
        (100, "°F", "C", 37.77777777777777),
        (0, "kelvin", "celsius", -273.15),
        (1, "GiB", "MB", 1073.741824),
        (90, "km/h", "m/s", 25),
        (33, "평", "m2", 109.0909090909091),
        (2, "斤", "kg", 1),
    ],
)
def test_units_convert_in_three_languages(value, source, target, expected):
    assert convert(value, source, target)[0] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("value", "source", "target", "why"),
    [
        (1, "km", "kg", "km measures length and kg measures mass: they do not convert"),
        (1, "celsius", "kg", "°C measures temperature and kg measures mass"),
        (1, "foots", "m", "did you mean 'foot'"),
        (1, "zzzzzz", "m", "known are, for example"),
        (-300, "C", "F", "below absolute zero"),
    ],
)
def test_what_does_not_convert_says_why(value, source, target, why):
    with pytest.raises(ValueError, match=why):
        convert(value, source, target)
