//! The one source of chance in this crate: [`Dice`], thrown from a seed, so that every surprise can
//! be had again. It is no good for secrets.

/// A sequence of numbers that depends on its seed alone (splitmix64 by Sebastiano Vigna).
#[derive(Clone, Debug)]
pub struct Dice {
    state: u64,
}

impl Dice {
    /// The dice of a seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The dice of one thing among many: a page of a host of a web, say. Each of the numbers
    /// changes every throw.
    pub fn of(parts: &[u64]) -> Self {
        let state = parts.iter().fold(0, |state, part| mix(state ^ part).wrapping_add(GOLDEN));
        Self { state }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// A number from 0 up to, not including, `end`. Nothing is below 0, so that one gives 0.
    pub fn below(&mut self, end: u64) -> u64 {
        // The high half of the product spreads 64 bits over the range without a division.
        let product = u128::from(self.bits()) * u128::from(end);
        u64::try_from(product >> 64).expect("the high half of 128 bits")
    }

    /// An index into something of this length.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).expect("less than a usize")
    }

    /// True in this share of all throws: never at 0, always at 1.
    pub fn chance(&mut self, share: f64) -> bool {
        const STEPS: f64 = (1_u64 << 53) as f64;
        ((self.bits() >> 11) as f64) < share * STEPS
    }
}

/// 2^64 divided by the golden ratio: the step that visits all states.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_sequence() {
        // The first outputs for seed 1234567, as the reference implementation in C prints them.
        let mut dice = Dice::new(1_234_567);
        assert_eq!(dice.bits(), 6_457_827_717_110_365_317);
        assert_eq!(dice.bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn every_face_comes_up() {
        let mut dice = Dice::new(7);
        let mut faces = [0_u32; 6];
        for _ in 0..6_000 {
            faces[dice.index(6)] += 1;
        }
        assert!(faces.iter().all(|&count| (850..1150).contains(&count)), "{faces:?}");
    }

    #[test]
    fn chance_keeps_to_its_share() {
        let mut dice = Dice::new(7);
        assert!((0..1000).all(|_| !dice.chance(0.0)));
        assert!((0..1000).all(|_| dice.chance(1.0)));
        let hits = (0..10_000).filter(|_| dice.chance(0.25)).count();
        assert!((2_300..2_700).contains(&hits), "{hits}");
    }

    #[test]
    fn each_part_matters() {
        let first = Dice::of(&[1, 2, 3]).bits();
        assert_eq!(Dice::of(&[1, 2, 3]).bits(), first);
        for other in [[0, 2, 3], [1, 0, 3], [1, 2, 0], [3, 2, 1]] {
            assert_ne!(Dice::of(&other).bits(), first, "{other:?}");
        }
    }
}
