//! What each part of the controller needs to issue commands: the time, tickets, and the list of commands.

use crate::Nanos;
use crate::command::Command;
use crate::ids::Ticket;

/// Numbers commands.
#[derive(Debug, Default)]
pub(crate) struct Tickets(u64);

impl Tickets {
    /// A new ticket.
    pub(crate) fn next(&mut self) -> Ticket {
        self.0 += 1;
        Ticket(self.0)
    }
}

/// See the [module](self).
pub(crate) struct Orders<'a> {
    pub(crate) now: Nanos,
    pub(crate) tickets: &'a mut Tickets,
    pub(crate) out: &'a mut Vec<Command>,
}
