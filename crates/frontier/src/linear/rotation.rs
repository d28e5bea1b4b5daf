//! [`Rotation`]: who asks next. Turns are exact: rates 1 and 2 over A and b give A b b A b b. One
//! that cannot ask now holds up no other, and is owed no more than the rest of its turn.

/// Places that take turns by their rates.
#[derive(Clone, Debug)]
pub(crate) struct Rotation {
    seats: Vec<Seat>,
    /// The seat whose turn it is.
    at: usize,
}

#[derive(Clone, Copy, Debug)]
struct Seat {
    place: usize,
    rate: u32,
    /// What is left of its turn in this round.
    left: u32,
}

impl Rotation {
    /// Places 0, 1, 2 … with these rates.
    pub(crate) fn new(rates: &[u32]) -> Self {
        let seat = |(place, &rate): (usize, &u32)| Seat { place, rate, left: rate };
        Self { seats: rates.iter().enumerate().map(seat).collect(), at: 0 }
    }

    /// Whose turn it is, among those that can ask. If none can, nothing changes: a pause of the
    /// only host must not begin a new round in the middle of one.
    pub(crate) fn next(&mut self, mut can_ask: impl FnMut(usize) -> bool) -> Option<usize> {
        let count = self.seats.len();
        let in_order = (0..count).map(|distance| (self.at + distance) % count);
        let mut in_turn = in_order.clone().filter(|&seat| self.seats[seat].left > 0);
        let found = in_turn.find(|&seat| can_ask(self.seats[seat].place));
        let seat = match found {
            Some(seat) => seat,
            None => {
                let mut had_turn = in_order.filter(|&seat| self.seats[seat].left == 0);
                let seat = had_turn.find(|&seat| can_ask(self.seats[seat].place))?;
                self.seats.iter_mut().for_each(|seat| seat.left = seat.rate);
                seat
            }
        };
        self.seats[seat].left -= 1;
        self.at = if self.seats[seat].left == 0 { (seat + 1) % count } else { seat };
        Some(self.seats[seat].place)
    }

    /// A place will never ask again.
    pub(crate) fn leave(&mut self, place: usize) {
        let Some(seat) = self.seats.iter().position(|seat| seat.place == place) else { return };
        self.seats.remove(seat);
        if seat < self.at {
            self.at -= 1;
        }
        if self.at == self.seats.len() {
            self.at = 0;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.seats.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(rotation: &mut Rotation, count: usize, can_ask: impl Fn(usize) -> bool) -> String {
        let names = ["A", "b", "C", "d"];
        (0..count).filter_map(|_| rotation.next(&can_ask)).map(|place| names[place]).collect()
    }

    #[test]
    fn rates_are_exact() {
        assert_eq!(turns(&mut Rotation::new(&[1, 2]), 9, |_| true), "AbbAbbAbb");
        assert_eq!(turns(&mut Rotation::new(&[1, 1, 1]), 7, |_| true), "AbCAbCA");
        assert_eq!(turns(&mut Rotation::new(&[3, 1, 2]), 13, |_| true), "AAAbCCAAAbCCA");
    }

    #[test]
    fn a_pause_of_all_changes_nothing() {
        let mut rotation = Rotation::new(&[1, 2]);
        let mut order = String::new();
        for _ in 0..6 {
            assert_eq!(rotation.next(|_| false), None);
            order += &turns(&mut rotation, 1, |_| true);
        }
        assert_eq!(order, "AbbAbb");
    }

    #[test]
    fn one_that_cannot_ask_holds_up_nobody() {
        let mut rotation = Rotation::new(&[1, 2]);
        assert_eq!(turns(&mut rotation, 5, |place| place == 1), "bbbbb");
        // The last b was the first of two.
        assert_eq!(turns(&mut rotation, 5, |_| true), "bAbbA");
    }

    #[test]
    fn the_rest_of_a_turn_is_kept_within_the_round() {
        let mut rotation = Rotation::new(&[2, 1]);
        assert_eq!(turns(&mut rotation, 1, |_| true), "A");
        assert_eq!(turns(&mut rotation, 1, |place| place == 1), "b");
        assert_eq!(turns(&mut rotation, 4, |_| true), "AbAA");
    }

    #[test]
    fn one_that_is_finished_leaves() {
        let mut rotation = Rotation::new(&[1, 2, 1]);
        assert_eq!(turns(&mut rotation, 2, |_| true), "Ab");
        rotation.leave(1);
        assert_eq!(turns(&mut rotation, 4, |_| true), "CACA");
        rotation.leave(0);
        assert_eq!(turns(&mut rotation, 2, |_| true), "CC");
        rotation.leave(2);
        assert!(rotation.is_empty());
        assert_eq!(rotation.next(|_| true), None);
    }
}
