"""Units of measure: one table of factors, names in English, Korean and Chinese."""

import difflib
import re

__all__ = ["convert"]

# dimension: {unit: (factor to the first unit of the dimension, names)}; the first name is the one shown
_UNITS: dict[str, dict[str, tuple[float, str]]] = {
    "length": {
        "m": (1, "metre metres meter meters 미터 米 公尺"),
        "km": (1000, "kilometre kilometres kilometer kilometers kms 킬로미터 킬로 公里 千米"),
        "cm": (0.01, "centimetre centimetres centimeter centimeters 센티미터 센티 厘米 公分"),
        "mm": (0.001, "millimetre millimetres millimeter millimeters 밀리미터 毫米"),
        "mi": (1609.344, "mile miles 마일 英里"),
        "yd": (0.9144, "yard yards 야드 码"),
        "ft": (0.3048, "foot feet 피트 英尺"),
        "in": (0.0254, "inch inches 인치 英寸"),
        "nmi": (1852, "nautical_mile nautical_miles 해리 海里"),
    },
    "mass": {
        "kg": (1, "kilogram kilograms kilo kilos kgs 킬로그램 公斤 千克"),
        "g": (0.001, "gram grams 그램 克"),
        "mg": (1e-6, "milligram milligrams 밀리그램 毫克"),
        "t": (1000, "tonne tonnes 톤 吨"),
        "lb": (0.45359237, "pound pounds lbs 파운드 磅"),
        "oz": (0.028349523125, "ounce ounces 온스 盎司"),
        "geun": (0.6, "근"),
        "jin": (0.5, "斤"),
    },
    "volume": {
        "l": (1, "litre litres liter liters 리터 升"),
        "ml": (0.001, "millilitre millilitres milliliter milliliters 밀리리터 毫升"),
        "m3": (1000, "m³ cubic_metre cubic_metres cubic_meter cubic_meters 세제곱미터 立方米"),
        "gal": (3.785411784, "gallon gallons 갤런 加仑"),
        "pt": (0.473176473, "pint pints 파인트 品脱"),
        "cup": (0.2365882365, "cups 컵 杯"),
        "floz": (0.0295735295625, "fl_oz fluid_ounce fluid_ounces"),
    },
    "area": {
        "m2": (1, "m² sqm square_metre square_metres square_meter square_meters 제곱미터 평방미터 平方米"),
        "km2": (1e6, "km² square_kilometre square_kilometres square_kilometer square_kilometers 제곱킬로미터 平方公里"),
        "ha": (1e4, "hectare hectares 헥타르 公顷"),
        "acre": (4046.8564224, "acres 에이커 英亩"),
        "ft2": (0.09290304, "ft² sqft square_foot square_feet 제곱피트 平方英尺"),
        "pyeong": (400 / 121, "평 坪"),
    },
    "time": {
        "s": (1, "sec secs second seconds 초 秒"),
        "min": (60, "mins minute minutes 분 分钟"),
        "h": (3600, "hr hrs hour hours 시간 小时"),
        "day": (86400, "d days 일 天"),
        "week": (604800, "weeks 주 周 星期"),
        "year": (31557600, "years 년 年"),
    },
    "speed": {
        "m/s": (1, "mps metres_per_second meters_per_second 초속미터 米每秒"),
        "km/h": (1 / 3.6, "kmh kph kilometres_per_hour kilometers_per_hour 시속킬로미터 公里每小时"),
        "mph": (0.44704, "miles_per_hour 英里每小时"),
        "kn": (1852 / 3600, "knot knots 노트 节"),
    },
    "data": {
        "b": (1, "byte bytes 바이트 字节"),
        "kb": (1e3, "kilobyte kilobytes 킬로바이트"),
        "mb": (1e6, "megabyte megabytes 메가바이트 兆字节"),
        "gb": (1e9, "gigabyte gigabytes 기가바이트 吉字节"),
        "tb": (1e12, "terabyte terabytes 테라바이트 太字节"),
        "kib": (1024, "kibibyte kibibytes"),
        "mib": (1024**2, "mebibyte mebibytes"),
        "gib": (1024**3, "gibibyte gibibytes"),
    },
    "energy": {
        "j": (1, "joule joules 줄 焦耳"),
        "kj": (1000, "kilojoule kilojoules 킬로줄 千焦"),
        "cal": (4.184, "calorie calories 칼로리 卡"),
        "kcal": (4184, "kilocalorie kilocalories 킬로칼로리 千卡 大卡"),
        "kwh": (3.6e6, "kilowatt_hour kilowatt_hours 킬로와트시 千瓦时 度电"),
    },
}
_DEGREES = {
    "°C": "c °c celsius centigrade degree_celsius degrees_celsius 섭씨 摄氏度 摄氏 ℃",
    "°F": "f °f fahrenheit degree_fahrenheit degrees_fahrenheit 화씨 华氏度 华氏 ℉",
    "K": "k kelvin kelvins 켈빈 开尔文",
}
_FACTORS = {unit: (dimension, factor) for dimension, units in _UNITS.items() for unit, (factor, _) in units.items()}
_INDEX = (
    {unit: unit for unit in _FACTORS}
    | {name: unit for units in _UNITS.values() for unit, (_, names) in units.items() for name in names.split()}
    | {name: unit for unit, names in _DEGREES.items() for name in names.split()}
)


def convert(value: float, from_unit: str, to_unit: str) -> tuple[float, str, str]:
    """The value in `to_unit`, and the usual signs of both units.

    Raises:
        ValueError: a unit is unknown, or the two measure different things.
    """
    source, target = _unit(from_unit), _unit(to_unit)
    if source in _DEGREES and target in _DEGREES:
        return _degrees(value, source, target), source, target
    from_dimension, from_factor = _FACTORS.get(source, ("temperature", 1.0))
    to_dimension, to_factor = _FACTORS.get(target, ("temperature", 1.0))
    if from_dimension != to_dimension:
        raise ValueError(
            f"{source} measures {from_dimension} and {target} measures {to_dimension}: they do not convert"
        )
    return value * from_factor / to_factor, source, target


def _degrees(value: float, source: str, target: str) -> float:
    kelvin = {"°C": value + 273.15, "°F": (value + 459.67) * 5 / 9, "K": value}[source]
    if kelvin < 0:
        raise ValueError(f"{value:g} {source} is below absolute zero")
    return {"°C": kelvin - 273.15, "°F": kelvin * 9 / 5 - 459.67, "K": kelvin}[target]


def _unit(name: str) -> str:
    key = re.sub(r"[\s_]+", "_", name.strip().casefold()).strip("_.")
    if unit := _INDEX.get(key):
        return unit
    near = difflib.get_close_matches(key, _INDEX, n=1)
    hint = (
        f"did you mean {near[0].replace('_', ' ')!r}?"
        if near
        else "known are, for example, km, mile, kg, lb, l, °C, °F, km/h, GB"
    )
    raise ValueError(f"the unit {name!r} is not known; {hint}")
