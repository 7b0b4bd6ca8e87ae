//! The secret part of the address: whoever has it may look, and nobody else on this machine, whatever pages his browser shows.
//! It is made anew for each run, kept in memory alone, and not shown where it is printed by accident.

use std::fmt::{self, Write};
use std::hint::black_box;

use crate::failure::Failure;

/// Random bytes of a token: 128 bits cannot be guessed.
const BYTES: usize = 16;

/// Random bytes of the system, in hexadecimal.
pub struct Token(String);

impl Token {
    /// A new one.
    pub fn random() -> Result<Self, Failure> {
        let mut bytes = [0_u8; BYTES];
        let failed =
            |error: getrandom::Error| Failure::Local { what: "random numbers", why: error.to_string() };
        getrandom::fill(&mut bytes).map_err(failed)?;
        let mut text = String::with_capacity(2 * BYTES);
        for byte in bytes {
            write!(text, "{byte:02x}").expect("a String takes everything");
        }
        Ok(Self(text))
    }

    /// For the address, and for a page's nonce.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether `told` is the token, in a time that depends on its length alone.
    pub fn fits(&self, told: &str) -> bool {
        let (told, own) = (told.as_bytes(), self.0.as_bytes());
        if told.len() != own.len() {
            return false;
        }
        let differing = told.iter().zip(own).fold(0, |so_far, (a, b)| black_box(so_far | (a ^ b)));
        black_box(differing) == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_random_and_nothing_else_fits_it() {
        let (one, other) = (Token::random().expect("random"), Token::random().expect("random"));
        assert_eq!(one.reveal().len() * 4, 8 * BYTES);
        assert!(one.fits(one.reveal()) && !one.fits(other.reveal()));
        for place in 0..one.reveal().len() {
            let mut wrong = one.reveal().to_owned();
            let character = if &wrong[place..=place] == "0" { "1" } else { "0" };
            wrong.replace_range(place..=place, character);
            assert!(!one.fits(&wrong), "a digit at {place}");
        }
        assert!(!one.fits("") && !one.fits(&format!("{}0", one.reveal())));
        assert_eq!(format!("{one:?}"), "Token");
    }
}
