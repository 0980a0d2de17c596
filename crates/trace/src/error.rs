//! Errors in traces: what is wrong, where, and what to do.

use std::io;

use crate::{
    HEADER, MAX_COMPONENTS, MAX_FILE_BYTES, MAX_NAME_BYTES, MAX_NAMES, MAX_OP_BYTES, MAX_TIME,
    MAX_TRACE_BYTES, SIZES_HEADER, TraceOp, recorded,
};

/// Why a file cannot be opened as a trace.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file system refuses.
    #[error("cannot read the trace {name}: {cause}{}", remedy(cause))]
    Io {
        /// The file.
        name: String,
        /// The error.
        cause: io::Error,
    },
    /// It is no trace.
    #[error("{name}: {problem}")]
    Trace {
        /// The file.
        name: String,
        /// What is wrong.
        problem: TraceError,
    },
}

fn remedy(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::PermissionDenied => {
            "; what sudo has recorded is root's: use sudo, or sudo chown to give it to yourself"
        }
        _ => "",
    }
}

/// Why something is no trace.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// It is too large.
    #[error(
        "the trace has more than {MAX_TRACE_BYTES} bytes, the most that can be replayed; cut it into parts"
    )]
    TooLarge,
    /// It is recorded, and cannot be read.
    #[error(transparent)]
    Recorded(#[from] RecordedError),
    /// A line is wrong.
    #[error("line {line}: {problem}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: Problem,
    },
    /// There is nothing in it.
    #[error(
        "the trace has no records: it needs the line `{HEADER}` and below it a line an operation (`bowwave replay --example` prints one)"
    )]
    Empty,
    /// Too many directories would be made.
    #[error(
        "the names of the trace's files have more than {MAX_COMPONENTS} components together; leave out files"
    )]
    TooManyComponents,
    /// The files are too large for the simulator.
    #[error(
        "the trace's files have {bytes} bytes together and {MAX_FILE_BYTES} can be simulated; leave out files, {largest:?} first"
    )]
    FilesTooLarge {
        /// All files together.
        bytes: u64,
        /// The name of the largest.
        largest: String,
    },
}

impl From<io::Error> for RecordedError {
    fn from(error: io::Error) -> Self {
        RecordedError::Io(error.kind())
    }
}

/// Why a recorded trace cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordedError {
    /// The file system refuses.
    #[error("cannot read it: {0}")]
    Io(io::ErrorKind),
    /// It is a recording of decisions.
    #[error(
        "it is a recording of bowwave's decisions, not a trace of reads; name it after `bowwave replay --verify`"
    )]
    OtherKind,
    /// It has another format.
    #[error("it has format {0}, not {ours} as this bowwave; use the version that recorded it", ours = recorded::KIND.format)]
    Format(u32),
    /// Its header is incomplete.
    #[error("it ends within its header: nothing was recorded; record again")]
    CutHeader,
    /// A block is not what was written.
    #[error("it is damaged at byte {at_byte}; copy it again, in binary mode, or record again")]
    Damaged {
        /// Where that block begins.
        at_byte: u64,
    },
    /// It holds no bytes.
    #[error("no read or write of a file was recorded; record while programs read")]
    NothingRead,
    /// All that was read lies beyond what can be simulated.
    #[error(
        "all its operations reach beyond what can be simulated, {MAX_FILE_BYTES} bytes of all files together and {MAX_OP_BYTES} of one operation; record programs that read less far"
    )]
    NothingWithinLimits,
}

/// What is wrong with a line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It is not UTF-8.
    #[error(
        "this is not UTF-8 text; is it a trace at all? (`bowwave replay --example` prints one)"
    )]
    NotText,
    /// A record before any header.
    #[error("the line `{HEADER}` (or `{SIZES_HEADER}`) has to come before this one")]
    NoHeader,
    /// Too few or too many fields.
    #[error(
        "{found} fields where {wanted} belong; put double quotes around names with commas, and if it is the last line see whether the file is whole"
    )]
    Fields {
        /// Fields there are.
        found: usize,
        /// Fields there should be.
        wanted: &'static str,
    },
    /// A quoted field does not end as it should.
    #[error("a double quote that is not closed at the end of its field; write \"\" for one inside")]
    Quote,
    /// A field is no number.
    #[error("{field} is {found:?}; write a whole number without a unit")]
    Number {
        /// Which field.
        field: &'static str,
        /// What it holds.
        found: String,
    },
    /// A time is no number.
    #[error("{field} is {found:?}; write microseconds, for example 1250 or 1250.5")]
    Time {
        /// Which field.
        field: &'static str,
        /// What it holds.
        found: String,
    },
    /// A time is too late for the simulator.
    #[error("{field} is {found:?}, which is too large: {most} microseconds are possible; count from the start of the trace", most = MAX_TIME / 1000)]
    Late {
        /// Which field.
        field: &'static str,
        /// What it holds.
        found: String,
    },
    /// No such operation.
    #[error("there is no operation {0:?}; those there are: {names}", names = op_names())]
    Op(String),
    /// A name is missing.
    #[error("{0} is empty; give it any name")]
    NoName(&'static str),
    /// A name is longer than any path.
    #[error("{0} has more than {MAX_NAME_BYTES} bytes; shorten it")]
    LongName(&'static str),
    /// The operation is larger than any system call's.
    #[error("{0} bytes in one operation and {MAX_OP_BYTES} are possible; make it several")]
    OpTooLarge(u64),
    /// It is beyond the largest file.
    #[error(
        "this reaches beyond byte {MAX_FILE_BYTES}, where no file can be simulated; leave it out"
    )]
    TooFar,
    /// This and all other operations have no bytes.
    #[error("neither here nor below is a byte read or written; a trace needs such operations")]
    NoBytes,
    /// This and all other operations lie beyond the ends of their files.
    #[error(
        "this lies beyond the end of {file:?}, which has {bytes} bytes as its file_bytes says, and nothing else in the trace can be read either; correct the sizes or leave them out"
    )]
    BeyondTheEnd {
        /// The file's name.
        file: String,
        /// Its size.
        bytes: u64,
    },
    /// A size was given twice.
    #[error("the size of {0:?} was given before; leave one of them out")]
    SizeTwice(String),
    /// More operations than can be kept.
    #[error("more than {MAX_OPERATIONS} operations; cut the trace into parts", MAX_OPERATIONS = recorded::MAX_OPERATIONS)]
    TooManyOperations,
    /// More names than can be kept.
    #[error("more than {MAX_NAMES} different names in the field {0}; cut the trace into parts")]
    TooManyNames(&'static str),
}

fn op_names() -> String {
    TraceOp::ALL.map(TraceOp::name).join(", ")
}
