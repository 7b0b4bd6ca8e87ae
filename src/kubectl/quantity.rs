//! Sizes as Kubernetes writes them (`20Gi`, `1.5T`, `1e9`): whether a text is one, and which of two is larger.
//!
//! It never prints a size anew: what a person typed is what goes into an object.

use thiserror::Error;

/// The most digits that are read. More could not be a number of bytes anybody has.
const DIGITS_MAX: usize = 24;

/// A size in thousandths of a byte, so that a fraction (`0.5Gi`, `500m`) is exact enough to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantity(i128);

/// Why a text is no size.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum QuantityError {
    #[error("a size is a number with Ki, Mi, Gi, Ti, Pi or Ei (or k, M, G, T, P or E) after it, as 20Gi")]
    Form,
    #[error("a volume has more than 0 bytes")]
    NotPositive,
    #[error("the size is larger than any that can be written")]
    TooLarge,
}

impl Quantity {
    /// Reads a size. It is more than nothing.
    pub fn parse(raw: &str) -> Result<Quantity, QuantityError> {
        let (sign, unsigned) = match raw.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, raw.strip_prefix('+').unwrap_or(raw)),
        };
        let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
            return Err(QuantityError::Form);
        }
        let digits = format!("{whole}{fraction}");
        if digits.len() > DIGITS_MAX {
            return Err(QuantityError::TooLarge);
        }
        let digits: i128 = digits.parse().map_err(|_| QuantityError::Form)?;
        let (numerator, denominator) = factor(suffix).ok_or(QuantityError::Form)?;
        let scale = 10_i128.pow(u32::try_from(fraction.len()).map_err(|_| QuantityError::TooLarge)?);
        let scaled = digits.checked_mul(numerator).ok_or(QuantityError::TooLarge)?;
        let thousandths = scaled.checked_mul(1000).ok_or(QuantityError::TooLarge)?;
        let value = sign * thousandths / (scale * denominator);
        if value > 0 { Ok(Quantity(value)) } else { Err(QuantityError::NotPositive) }
    }
}

/// What a suffix multiplies by, as a fraction.
fn factor(suffix: &str) -> Option<(i128, i128)> {
    let binary = |power: u32| Some((1024_i128.pow(power), 1));
    let decimal = |power: u32| Some((10_i128.pow(power), 1));
    match suffix {
        "" => Some((1, 1)),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "m" => Some((1, 1_000)),
        "u" => Some((1, 1_000_000)),
        "n" => Some((1, 1_000_000_000)),
        _ => exponent(suffix),
    }
}

/// `e9`, `E+9`, `e-3`.
fn exponent(suffix: &str) -> Option<(i128, i128)> {
    let power: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    let factor = 10_i128.checked_pow(power.unsigned_abs()).filter(|_| power.unsigned_abs() <= 18)?;
    Some(if power < 0 { (1, factor) } else { (factor, 1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn q(raw: &str) -> Quantity {
        Quantity::parse(raw).unwrap_or_else(|error| panic!("{raw}: {error}"))
    }

    #[test]
    fn sizes_are_compared_by_what_they_mean() {
        for (one, other) in [
            ("1Gi", "1024Mi"),
            ("1.5k", "1500"),
            ("1e3", "1k"),
            ("1E3", "1000"),
            ("1E", "1e18"),
            ("0.5Ki", "512"),
            ("1500m", "1.5"),
            ("+2Ki", "2048"),
            ("1e-3", "1m"),
            (".5k", "500"),
            ("5.k", "5k"),
        ] {
            assert_eq!(q(one), q(other), "{one} {other}");
        }
        assert!(q("1G") < q("1Gi") && q("20Gi") > q("19.9Gi") && q("1Ei") > q("1E"));
    }

    #[test]
    fn what_is_no_size_is_said_by_its_rule() {
        for raw in [
            "", "Gi", "20GB", "20gi", "20 Gi", "1K", "1..2", "1.2.3", "twenty", "1e99", "1e", "--1", ".",
            "0x1",
        ] {
            assert_eq!(Quantity::parse(raw), Err(QuantityError::Form), "{raw}");
        }
        for raw in ["0", "0Gi", "-1Gi", "-0"] {
            assert_eq!(Quantity::parse(raw), Err(QuantityError::NotPositive), "{raw}");
        }
        assert_eq!(Quantity::parse(&"9".repeat(30)), Err(QuantityError::TooLarge));
        assert_eq!(Quantity::parse(&format!("{}Ei", "9".repeat(24))), Err(QuantityError::TooLarge));
    }
}
