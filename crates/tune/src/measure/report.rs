//! How far measuring has come.

type Tell<'a> = dyn FnMut(f64, &str) + 'a;

/// Tells the user how far it is.
pub struct Report<'a> {
    tell: Box<Tell<'a>>,
    from: f64,
    share: f64,
}

impl<'a> Report<'a> {
    /// `tell` is given the part that is done, 0 to 1, and what is under way.
    pub fn to(tell: impl FnMut(f64, &str) + 'a) -> Self {
        Report { tell: Box::new(tell), from: 0.0, share: 1.0 }
    }

    #[cfg(test)]
    pub(super) fn silent() -> Self {
        Report::to(|_, _| ())
    }

    /// The next part takes this share of the whole.
    pub(super) fn part(&mut self, from: f64, share: f64) {
        (self.from, self.share) = (from, share);
    }

    pub(super) fn tell(&mut self, part: f64, what: &str) {
        (self.tell)(self.from + self.share * part.min(1.0), what);
    }
}
