//! The little of HTTP/1.1 that a scraper needs: one request on each connection, `GET /metrics`. All else is refused.

/// A longer request is refused. Scrapers send a few hundred bytes.
pub(super) const MOST_REQUEST_BYTES: usize = 8 << 10;

/// The path of the metrics.
pub(super) const PATH: &str = "/metrics";

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Metrics,
    Refused(Refusal),
}

/// Why a client gets no metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    NotHttp,
    OtherPath,
    OtherMethod,
    TooLong,
    /// Bowwave runs and does not answer.
    Unavailable,
}

/// The request in the bytes that a client has sent so far; `None` if more must come. Only its first line counts.
pub(super) fn request(received: &[u8]) -> Option<Request> {
    let end = end_of_header(received);
    if end.unwrap_or(received.len()) > MOST_REQUEST_BYTES {
        return Some(Request::Refused(Refusal::TooLong));
    }
    end?;
    let line =
        received.split(|byte| *byte == b'\n').next().and_then(|line| str::from_utf8(line).ok());
    Some(line.and_then(in_line).unwrap_or(Request::Refused(Refusal::NotHttp)))
}

/// Where the first empty line ends that is not the first line.
fn end_of_header(received: &[u8]) -> Option<usize> {
    let mut end = 0;
    let lines = received.split_inclusive(|byte| *byte == b'\n').enumerate();
    for (number, line) in lines {
        end += line.len();
        if number > 0 && [&b"\r\n"[..], b"\n"].contains(&line) {
            return Some(end);
        }
    }
    None
}

/// `GET /metrics?query HTTP/1.1`
fn in_line(line: &str) -> Option<Request> {
    let mut words = line.trim_end_matches('\r').split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    if !is_method || !version.starts_with("HTTP/1.") || words.next().is_some() {
        return None;
    }
    Some(match (method, target.split('?').next()) {
        ("GET", Some(PATH)) => Request::Metrics,
        (_, Some(PATH)) => Request::Refused(Refusal::OtherMethod),
        _ => Request::Refused(Refusal::OtherPath),
    })
}

/// The answer with metrics.
pub(super) fn with_metrics(text: &str) -> Vec<u8> {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    answer("200 OK", kind, text)
}

impl Refusal {
    /// The answer.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let (status, reason) = match self {
            Refusal::NotHttp => ("400 Bad Request", "this is no HTTP request"),
            Refusal::OtherPath => ("404 Not Found", "only /metrics is here"),
            Refusal::OtherMethod => ("405 Method Not Allowed\r\nAllow: GET", "use GET"),
            Refusal::TooLong => ("431 Request Header Fields Too Large", "the request is too long"),
            Refusal::Unavailable => ("503 Service Unavailable", "bowwave gives no answer"),
        };
        answer(status, "text/plain; charset=utf-8", &format!("{reason}\n"))
    }
}

fn answer(status: &str, kind: &str, body: &str) -> Vec<u8> {
    let bytes = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {bytes}\r\nConnection: close\r\n\r\n\
         {body}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_get_metrics_is_answered() {
        use Refusal::{NotHttp, OtherMethod, OtherPath};
        let refused = Request::Refused;
        for (line, expected) in [
            ("GET /metrics HTTP/1.1", Request::Metrics),
            ("GET /metrics?name=bowwave_reads HTTP/1.0", Request::Metrics),
            ("GET / HTTP/1.1", refused(OtherPath)),
            ("GET /metrics/.. HTTP/1.1", refused(OtherPath)),
            ("GET /metricsx HTTP/1.1", refused(OtherPath)),
            ("POST / HTTP/1.1", refused(OtherPath)),
            ("HEAD /metrics HTTP/1.1", refused(OtherMethod)),
            ("POST /metrics HTTP/1.1", refused(OtherMethod)),
            ("get /metrics HTTP/1.1", refused(NotHttp)),
            ("GET /metrics HTTP/2", refused(NotHttp)),
            ("GET /metrics", refused(NotHttp)),
            ("GET  /metrics HTTP/1.1", refused(NotHttp)),
            ("GET /metrics HTTP/1.1 x", refused(NotHttp)),
            ("\u{16}\u{3}\u{1}", refused(NotHttp)),
            ("", refused(NotHttp)),
        ] {
            for end in ["\r\n\r\n", "\r\nHost: x\r\nAccept: y\r\n\r\nbody", "\n\n"] {
                let received = format!("{line}{end}");
                assert_eq!(request(received.as_bytes()), Some(expected), "{received:?}");
            }
        }
    }

    #[test]
    fn a_request_is_complete_after_its_empty_line_and_not_too_long() {
        let whole = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
        for bytes in 0..whole.len() {
            assert_eq!(request(&whole[..bytes]), None, "{bytes}");
        }
        assert_eq!(request(whole), Some(Request::Metrics));
        let endless = [b'x'; MOST_REQUEST_BYTES + 1];
        assert_eq!(request(&endless[1..]), None);
        assert_eq!(request(&endless), Some(Request::Refused(Refusal::TooLong)));
        let begin = b"GET /metrics HTTP/1.1\r\nX: ";
        let long = [begin, &endless[begin.len() + 4..], b"\r\n\r\n"].concat();
        assert_eq!(request(&long), Some(Request::Refused(Refusal::TooLong)), "its end has come");
        assert_eq!(request(&[&long[..30], &long[31..]].concat()), Some(Request::Metrics));
    }

    #[test]
    fn an_answer_says_what_it_is_and_how_long() {
        let text = String::from_utf8(with_metrics("# EOF\n")).expect("text");
        let expected = "HTTP/1.1 200 OK\r\n\
            Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n\
            Content-Length: 6\r\nConnection: close\r\n\r\n# EOF\n";
        assert_eq!(text, expected);
        let refused = String::from_utf8(Refusal::OtherMethod.to_bytes()).expect("text");
        assert!(
            refused.starts_with("HTTP/1.1 405 Method Not Allowed\r\nAllow: GET\r\n"),
            "{refused}"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_incomplete_request_or_have_an_answer(
            line in prop_oneof![
                "(GET|PUT|[ -~]{0,4}) (/metrics|/[ -~]{0,4}) (HTTP/1.1|[ -~]{0,4})".prop_map(String::into_bytes),
                prop::collection::vec(any::<u8>(), 0..40),
            ],
            rest in prop::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), any::<u8>()], 0..40),
        ) {
            let received = [&line[..], &rest].concat();
            match request(&received) {
                None => prop_assert!(!received.windows(4).any(|four| four == b"\r\n\r\n")),
                Some(Request::Metrics) => prop_assert!(received.starts_with(b"GET /metrics")),
                Some(Request::Refused(refusal)) => {
                    prop_assert_ne!(refusal, Refusal::TooLong);
                    prop_assert!(refusal.to_bytes().starts_with(b"HTTP/1.1 4"));
                }
            }
        }

        /// What comes after the empty line changes nothing.
        #[test]
        fn more_bytes_do_not_change_a_complete_request(
            received in prop::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), any::<u8>()], 0..40),
            more in prop::collection::vec(any::<u8>(), 0..9000),
        ) {
            if let Some(complete) = request(&received) {
                prop_assert_eq!(request(&[&received[..], &more].concat()), Some(complete));
            }
        }
    }
}
