//! Serves the metrics to a scraper on this machine. Needs no privilege but to ask bowwave.
//!
//! ```text
//!   scraper --GET /metrics--> serve --at most once a second--> status sockets of the daemon and runs
//! ```
//!
//! Any user of the machine may connect. So one thread serves all connections and waits for none of them, their number,
//! time and bytes are bounded, and bowwave is asked no more often if more of them come.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::http::{self, Refusal, Request};
use crate::print;

/// How many connections are open at once. A new one takes the place of the oldest: a scraper sends its request within
/// milliseconds, and others may wait for ever.
const MOST_CONNECTIONS: usize = 64;

/// A connection is closed after this time.
const TIMEOUT: Duration = Duration::from_secs(5);

/// How old the answer may be.
const MOST_AGE: Duration = Duration::from_secs(1);

/// Parses an address that no other machine can reach.
pub(super) fn loopback(text: &str) -> Result<SocketAddr, String> {
    match text.parse::<SocketAddr>() {
        Ok(address) if address.ip().is_loopback() => Ok(address),
        Ok(_) => {
            Err("other machines can reach it, and whoever connects may read the metrics; name a \
                      loopback address such as 127.0.0.1:9464 or [::1]:9464"
                .into())
        }
        Err(_) => Err("it is not an IP address with a port, such as 127.0.0.1:9464".into()),
    }
}

/// Listens, and answers until the process is ended. `metrics` gives the text; `None` if bowwave does not answer.
///
/// # Errors
/// If it cannot listen, or accept connections.
pub(super) fn serve(
    address: SocketAddr,
    metrics: impl FnMut() -> Option<String>,
) -> anyhow::Result<Infallible> {
    let listener = listen(address)
        .with_context(|| format!("cannot listen on {address}; name a free port with --listen"))?;
    let path = http::PATH;
    print::line(format_args!("serving http://{}{path}", listener.local_addr()?))?;
    let mut server = Server::new(listener, TIMEOUT, metrics);
    loop {
        server.turn().context("cannot accept connections")?;
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// The answer with metrics, which all scrapers share for [`MOST_AGE`].
struct Page<F> {
    metrics: F,
    made: Option<(Instant, Rc<[u8]>)>,
}

impl<F: FnMut() -> Option<String>> Page<F> {
    fn of(metrics: F) -> Self {
        Page { metrics, made: None }
    }

    fn answer(&mut self) -> Rc<[u8]> {
        if let Some((at, answer)) = &self.made
            && at.elapsed() < MOST_AGE
        {
            return Rc::clone(answer);
        }
        let text = (self.metrics)();
        let answer =
            text.map_or_else(|| Refusal::Unavailable.to_bytes(), |text| http::with_metrics(&text));
        let answer: Rc<[u8]> = answer.into();
        self.made = Some((Instant::now(), Rc::clone(&answer)));
        answer
    }
}

struct Server<F> {
    listener: TcpListener,
    /// Of each connection.
    timeout: Duration,
    /// The oldest first.
    connections: VecDeque<Connection>,
    page: Page<F>,
}

impl<F: FnMut() -> Option<String>> Server<F> {
    fn new(listener: TcpListener, timeout: Duration, metrics: F) -> Self {
        Server { listener, timeout, connections: VecDeque::new(), page: Page::of(metrics) }
    }

    /// Waits until something can be done, and does it.
    fn turn(&mut self) -> io::Result<()> {
        let ready = self.wait()?;
        let page = &mut self.page;
        let mut ready = ready.into_iter();
        let is_asked = ready.next().unwrap_or(false);
        self.connections.retain_mut(|connection| {
            let is_ready = ready.next().unwrap_or(false);
            let goes_on = !is_ready || connection.advance(page);
            goes_on && connection.since.elapsed() < self.timeout
        });
        if is_asked { self.accept() } else { Ok(()) }
    }

    /// Whether the listener and each connection are ready.
    fn wait(&self) -> io::Result<Vec<bool>> {
        let left = |oldest: &Connection| self.timeout.saturating_sub(oldest.since.elapsed());
        let timeout = self.connections.front().map(left);
        let timeout = timeout.and_then(|left| Timespec::try_from(left).ok());
        let mut waited = vec![PollFd::new(&self.listener, PollFlags::IN)];
        waited.extend(self.connections.iter().map(Connection::awaited));
        match poll(&mut waited, timeout.as_ref()) {
            Ok(_) => Ok(waited.iter().map(|one| !one.revents().is_empty()).collect()),
            Err(rustix::io::Errno::INTR) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// Accepts waiting connections and serves them as far as possible.
    fn accept(&mut self) -> io::Result<()> {
        for _ in 0..MOST_CONNECTIONS {
            match self.listener.accept() {
                Ok((stream, _)) => self.begin(stream),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // The client has gone already.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn begin(&mut self, stream: TcpStream) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        let mut connection = Connection::new(stream);
        if connection.advance(&mut self.page) {
            if self.connections.len() == MOST_CONNECTIONS {
                self.connections.pop_front();
            }
            self.connections.push_back(connection);
        }
    }
}

struct Connection {
    stream: TcpStream,
    since: Instant,
    received: Vec<u8>,
    answer: Option<Rc<[u8]>>,
    sent_bytes: usize,
}

impl Connection {
    fn new(stream: TcpStream) -> Self {
        Connection {
            stream,
            since: Instant::now(),
            received: Vec::new(),
            answer: None,
            sent_bytes: 0,
        }
    }

    fn awaited(&self) -> PollFd<'_> {
        let direction = if self.answer.is_some() { PollFlags::OUT } else { PollFlags::IN };
        PollFd::new(&self.stream, direction)
    }

    /// Reads and writes what is possible without waiting. Returns whether there is more to do.
    fn advance(&mut self, page: &mut Page<impl FnMut() -> Option<String>>) -> bool {
        let done = self.receive(page).and_then(|()| self.send());
        done.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }

    /// Reads until there is an answer.
    fn receive(&mut self, page: &mut Page<impl FnMut() -> Option<String>>) -> io::Result<()> {
        let mut piece = [0; 1024];
        while self.answer.is_none() {
            let bytes = match self.stream.read(&mut piece) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == ErrorKind::Interrupted => 0,
                other => other?,
            };
            self.received.extend(&piece[..bytes]);
            self.answer = http::request(&self.received).map(|request| match request {
                Request::Metrics => page.answer(),
                Request::Refused(refusal) => refusal.to_bytes().into(),
            });
        }
        Ok(())
    }

    fn send(&mut self) -> io::Result<()> {
        let Some(answer) = &self.answer else { return Ok(()) };
        while let Some(rest) = answer.get(self.sent_bytes..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => self.sent_bytes += other?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    const REQUEST: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

    /// Longer than a test takes.
    const LONG: Duration = Duration::from_secs(3600);

    /// Serves a text of that many lines in a thread that ends with the test's process. Returns its address, and how
    /// often the text was made.
    fn serving(lines: usize, timeout: Duration) -> (SocketAddr, Arc<AtomicUsize>) {
        let listener = listen("127.0.0.1:0".parse().expect("an address")).expect("a free port");
        let address = listener.local_addr().expect("bound");
        let made = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&made);
        thread::spawn(move || {
            let metrics = || {
                counted.fetch_add(1, Ordering::Relaxed);
                Some("a 1\n".repeat(lines))
            };
            let mut server = Server::new(listener, timeout, metrics);
            while server.turn().is_ok() {}
        });
        (address, made)
    }

    fn connected(address: SocketAddr) -> TcpStream {
        TcpStream::connect(address).expect("it listens")
    }

    /// What a client gets who sends this.
    fn answer(address: SocketAddr, sent: &[u8]) -> String {
        let mut stream = connected(address);
        stream.write_all(sent).expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it closes the connection");
        text
    }

    fn is_served(address: SocketAddr) {
        let text = answer(address, REQUEST);
        assert!(
            text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\r\n\r\na 1\n"),
            "{text}"
        );
    }

    #[test]
    fn only_loopback_addresses_are_accepted() {
        for good in ["127.0.0.1:9464", "127.8.0.1:1", "[::1]:9464", "127.0.0.1:0"] {
            assert_eq!(loopback(good).map(|address| address.to_string()), Ok(good.into()));
        }
        let far = [
            "0.0.0.0:9464",
            "[::]:9464",
            "192.168.1.2:9464",
            "10.0.0.1:80",
            "[::ffff:127.0.0.1]:1",
        ];
        for far in far {
            assert!(loopback(far).is_err_and(|why| why.contains("other machines")), "{far}");
        }
        for odd in ["", "9464", "127.0.0.1", "localhost:9464", "127.0.0.1:99999", "/run/x.sock"] {
            assert!(loopback(odd).is_err_and(|why| why.contains("with a port")), "{odd}");
        }
    }

    #[test]
    fn a_scraper_gets_the_metrics_and_others_a_refusal() {
        let (address, _) = serving(1, LONG);
        is_served(address);
        assert!(answer(address, b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        assert!(answer(address, b"PUT /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
        assert!(answer(address, b"\x16\x03\x01\n\n").starts_with("HTTP/1.1 400 "));
        is_served(address);
    }

    #[test]
    fn a_request_may_come_in_pieces() {
        let (address, _) = serving(1, LONG);
        let mut stream = connected(address);
        for byte in REQUEST {
            stream.write_all(&[*byte]).expect("sent");
        }
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("answered");
        assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
    }

    #[test]
    fn clients_that_hang_or_send_garbage_do_not_delay_others() {
        let (address, _) = serving(1, LONG);
        // More than may be open at once: the oldest are closed.
        let mut hanging: Vec<_> = (0..3 * MOST_CONNECTIONS).map(|_| connected(address)).collect();
        for (number, stream) in hanging.iter_mut().enumerate() {
            // Some begin a request, some say nothing. The server may have closed the connection.
            let _ = stream.write_all(&REQUEST[..number % REQUEST.len()]);
        }
        is_served(address);
        let mut endless = connected(address);
        let garbage = [b'x'; 2 * http::MOST_REQUEST_BYTES];
        let _ = endless.write_all(&garbage);
        is_served(address);
        drop(hanging);
        is_served(address);
    }

    #[test]
    fn clients_that_do_not_read_do_not_delay_others() {
        // No socket's buffer holds as much.
        let (address, _) = serving(16 << 20, LONG);
        let mut idle: Vec<_> = (0..4).map(|_| connected(address)).collect();
        idle.iter_mut().for_each(|stream| stream.write_all(REQUEST).expect("sent"));
        let refused = answer(address, b"GET / HTTP/1.1\r\n\r\n");
        assert!(refused.starts_with("HTTP/1.1 404 "), "{refused}");
        let whole = answer(address, REQUEST);
        assert!(whole.len() > 4 * (16 << 20) && whole.ends_with("a 1\n"));
    }

    #[test]
    fn bowwave_is_asked_once_a_second_however_many_scrape() {
        let (address, made) = serving(1, LONG);
        let begun = Instant::now();
        (0..200).for_each(|_| is_served(address));
        let most = 1 + begun.elapsed().as_secs() as usize;
        assert!((1..=most).contains(&made.load(Ordering::Relaxed)), "{most}");
    }

    #[test]
    fn a_silent_connection_is_closed_after_its_time() {
        let (address, _) = serving(1, Duration::from_millis(50));
        let mut begun = connected(address);
        begun.write_all(&REQUEST[..9]).expect("sent");
        for mut silent in [connected(address), begun] {
            let mut none = Vec::new();
            // It may be reset.
            let _ = silent.read_to_end(&mut none);
            assert!(none.is_empty(), "{none:?}");
        }
    }

    #[test]
    fn where_bowwave_gives_no_answer_that_is_said() {
        let answer = Page::of(|| None).answer();
        assert!(answer.starts_with(b"HTTP/1.1 503 "));
    }
}
