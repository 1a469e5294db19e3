//! LOC (RFC 1876): where a host is.

use super::cursor::Cursor;
use super::fault::Fault;
use super::lexer::Token;

/// Latitude and longitude are thousandths of a second of arc, counted from here (RFC 1876 section 2).
const MIDDLE: i64 = 1 << 31;
/// Altitude is in centimeters, counted from 100 km below the WGS 84 spheroid (section 2).
const LOWEST: i64 = 10_000_000;

/// Reads `d [m [s]] N|S d [m [s]] E|W altitude [size [horizontal [vertical]]]` (section 3).
pub(super) fn rdata(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, Fault> {
    let latitude = angle(cursor, 90, [b'N', b'S'])?;
    let longitude = angle(cursor, 180, [b'E', b'W'])?;
    let altitude = meters(cursor.next()?, -LOWEST, i64::from(u32::MAX) - LOWEST)?;
    // Defaults of section 3: 1 m, 10000 m and 10 m.
    let mut sizes = [100, 1_000_000, 1_000];
    for size in &mut sizes {
        if cursor.peek().is_some() {
            *size = meters(cursor.next()?, 0, 9_000_000_000)?;
        }
    }
    let mut wire = vec![0];
    wire.extend(sizes.map(precision));
    for value in [latitude + MIDDLE, longitude + MIDDLE, altitude + LOWEST] {
        let value = u32::try_from(value).map_err(|_| Fault::new("a place off the earth"))?;
        wire.extend_from_slice(&value.to_be_bytes());
    }
    Ok(wire)
}

/// Reads degrees, minutes, seconds and a hemisphere, in thousandths of a second; negative for the second hemisphere.
fn angle(cursor: &mut Cursor<'_>, most: i64, hemispheres: [u8; 2]) -> Result<i64, Fault> {
    let mut total = 0;
    // Degrees, minutes and seconds: thousandths of a second in one, greatest value, decimals.
    let parts = [(3_600_000, most, 0), (60_000, 59, 0), (1, 59_999, 3)];
    for (position, (factor, greatest, decimals)) in parts.into_iter().enumerate() {
        let token = cursor.peek();
        if position > 0 && token.is_some_and(|token| hemisphere(token, hemispheres).is_some()) {
            break;
        }
        let token = cursor.next()?;
        let value = decimal(token.raw, decimals).filter(|value| (0..=greatest).contains(value));
        total += factor * value.ok_or_else(|| bad(token))?;
    }
    let token = cursor.next()?;
    let sign = hemisphere(token, hemispheres).ok_or_else(|| {
        let [north, south] = hemispheres.map(char::from);
        Fault::new(format!(
            "{} where {north} or {south} is expected",
            token.shown()
        ))
    })?;
    if total > most * 3_600_000 {
        return Err(Fault::new(format!("more than {most} degrees")));
    }
    Ok(sign * total)
}

/// Tells the sign of a hemisphere's letter; `None` for every other field.
fn hemisphere(token: &Token<'_>, [plus, minus]: [u8; 2]) -> Option<i64> {
    match token.raw {
        [letter] if letter.eq_ignore_ascii_case(&plus) => Some(1),
        [letter] if letter.eq_ignore_ascii_case(&minus) => Some(-1),
        _ => None,
    }
}

/// Reads meters with or without `m`, in centimeters.
fn meters(token: &Token<'_>, least: i64, most: i64) -> Result<i64, Fault> {
    let raw = token
        .raw
        .strip_suffix(b"m")
        .or_else(|| token.raw.strip_suffix(b"M"));
    let value = decimal(raw.unwrap_or(token.raw), 2);
    let value = value.filter(|value| (least..=most).contains(value));
    value.ok_or_else(|| bad(token))
}

fn bad(token: &Token<'_>) -> Fault {
    Fault::new(format!(
        "{} is out of range or no number here",
        token.shown()
    ))
}

/// Reads a decimal number with at most `decimals` digits after the point, as a multiple of the last one.
fn decimal(raw: &[u8], decimals: usize) -> Option<i64> {
    let (sign, raw) = raw.strip_prefix(b"-").map_or((1, raw), |rest| (-1, rest));
    let point = raw.iter().position(|octet| *octet == b'.');
    let (whole, fraction) = match point {
        Some(at) => (raw.get(..at)?, raw.get(at + 1..)?),
        None => (raw, &[][..]),
    };
    let is_good = (1..=10).contains(&whole.len())
        && fraction.len() <= decimals
        && whole.iter().chain(fraction).all(u8::is_ascii_digit);
    let padding = std::iter::repeat_n(&b'0', decimals.saturating_sub(fraction.len()));
    let all = whole.iter().chain(fraction).chain(padding);
    is_good.then(|| sign * all.fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
}

/// Makes the octet of mantissa and power of ten (section 2) out of centimeters, rounded down.
fn precision(centimeters: i64) -> u8 {
    let mut mantissa = centimeters;
    let mut power = 0;
    while mantissa > 9 {
        mantissa /= 10;
        power += 1;
    }
    u8::try_from(mantissa << 4 | power).unwrap_or(0x99)
}
