//! What other runs of a file and its volume tell about a stream's run.

use super::survival::Lengths;
use super::waits::Waits;

#[derive(Debug)]
pub(super) struct Outlook<'a> {
    /// The exponent `a` of the tail `P(run >= x) ~ x^-a`; `None` if nothing is asked for this stream.
    pub(super) tail_exponent: Option<f64>,
    /// Where runs have ended.
    pub(super) lengths: Lengths<'a>,
    /// What an access costs a forward stream.
    pub(super) waits: &'a mut Waits,
}
