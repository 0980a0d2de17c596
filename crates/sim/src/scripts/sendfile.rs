//! A server that sends files to slow clients from one process, as lighttpd does with `sendfile(2)`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use readahead::Nanos;

use crate::process::{Op, OpenFile, Script};
use crate::scripts::random::Random;

/// Serves the client whose socket has had room for longest. A call requests the whole rest of the file; the socket
/// takes some of it, and has room again when the client has received that.
pub struct Server {
    clients: Vec<Client>,
    /// When each client's socket has room.
    ready: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// Bytes that the socket takes at a time: one of these values.
    takes: Vec<u64>,
    bytes_per_second: f64,
    until: Nanos,
    random: Random,
    /// The current client, and how many bytes it takes.
    serving: Option<(usize, u64)>,
    sent: Arc<AtomicU64>,
}

/// A client. When it has the file, it begins again with another open file, as another request would.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// The open file of the current download comes first.
    opens: [OpenFile; 2],
    bytes: u64,
    /// First byte of its downloads.
    begin: u64,
    /// First byte that it does not have.
    at: u64,
}

impl Client {
    /// A client that downloads `bytes` bytes from byte `begin` on.
    pub fn new(opens: [OpenFile; 2], bytes: u64, begin: u64) -> Self {
        Client { opens, bytes, begin, at: begin }
    }
}

impl Server {
    /// Clients come at equal intervals within `arriving`. The server ends at `until`.
    pub fn new(
        clients: Vec<Client>,
        arriving: Nanos,
        takes: Vec<u64>,
        bytes_per_second: f64,
        until: Nanos,
    ) -> Self {
        let count = clients.len() as u64;
        let start = |index: usize| Reverse((index as u64 * arriving / count, index));
        Server {
            ready: (0..clients.len()).map(start).collect(),
            clients,
            takes,
            bytes_per_second,
            until,
            // Any seed will do, but it must stay the same.
            random: Random::new(1921),
            serving: None,
            sent: Arc::default(),
        }
    }

    /// Counts the bytes sent, while it runs and afterwards.
    pub fn sent(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.sent)
    }

    /// The client has received the bytes. After a while it has room for more.
    fn served(&mut self, now: Nanos) {
        let Some((index, taken)) = self.serving.take() else { return };
        self.sent.fetch_add(taken, Ordering::Relaxed);
        let pause = taken as f64 / self.bytes_per_second * 1e9;
        self.ready.push(Reverse((now + pause as Nanos, index)));
    }
}

impl Script for Server {
    fn next(&mut self, now: Nanos) -> Op {
        self.served(now);
        let Some(&Reverse((at, index))) = self.ready.peek() else { return Op::Exit };
        if now.max(at) >= self.until {
            return Op::Exit;
        }
        if at > now {
            return Op::SleepUntil { at };
        }
        self.ready.pop();
        let take = self.takes[self.random.below(self.takes.len() as u64) as usize];
        let client = &mut self.clients[index];
        if client.at >= client.bytes {
            client.at = client.begin;
            client.opens.reverse();
        }
        let (at, asked) = (client.at, client.bytes - client.at);
        let taken = take.min(asked);
        client.at += taken;
        self.serving = Some((index, taken));
        Op::Send { open: client.opens[0], at, asked, taken }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_requests_the_rest_and_a_client_is_served_once_it_has_room() {
        let open = OpenFile(0);
        let client = Client::new([open; 2], 3000, 0);
        let mut server = Server::new(vec![client], 0, vec![2000], 1000.0, 10_000_000_000);
        let send = |at, asked, taken| Op::Send { open, at, asked, taken };
        assert_eq!(server.next(0), send(0, 3000, 2000));
        assert_eq!(server.next(500), Op::SleepUntil { at: 2_000_000_500 });
        assert_eq!(server.next(2_000_000_500), send(2000, 1000, 1000));
        assert_eq!(server.next(10_000_000_000), Op::Exit);
    }
}
