//! Reports how far a measurement has come.

type Tell<'a> = dyn FnMut(f64, &str) + 'a;

/// Tells the user about progress.
pub struct Report<'a> {
    tell: Box<Tell<'a>>,
    from: f64,
    share: f64,
}

impl<'a> Report<'a> {
    /// Calls `tell` with the share that is done, 0 to 1, and the current step.
    pub fn to(tell: impl FnMut(f64, &str) + 'a) -> Self {
        Report { tell: Box::new(tell), from: 0.0, share: 1.0 }
    }

    #[cfg(test)]
    pub(super) fn silent() -> Self {
        Report::to(|_, _| ())
    }

    /// The next part begins at `from` and takes `share` of the whole.
    pub(super) fn part(&mut self, from: f64, share: f64) {
        (self.from, self.share) = (from, share);
    }

    pub(super) fn tell(&mut self, part: f64, what: &str) {
        (self.tell)(self.from + self.share * part.min(1.0), what);
    }
}
