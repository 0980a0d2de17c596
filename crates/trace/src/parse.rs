//! Text to trace.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::error::{Problem, TraceError};
use crate::fields::{number, op, split, time};
use crate::recorded::MAX_OPERATIONS;
use crate::{
    HEADER, MAX_FILE_BYTES, MAX_NAME_BYTES, MAX_NAMES, MAX_OP_BYTES, MAX_TRACE_BYTES, Record,
    SIZES_HEADER, Trace, TraceOp, TracedFile, check_sizes, names,
};

/// The kind of lines after a header.
#[derive(Clone, Copy)]
enum Section {
    Start,
    Sizes,
    Records,
}

/// A trace that is being read.
#[derive(Default)]
struct Reader {
    trace: Trace,
    files: HashMap<String, u32>,
    processes: HashMap<String, u32>,
    /// The line that is being read.
    line: usize,
    /// Lines of the first operation, and of the first one that has bytes, with its file.
    first: Option<usize>,
    first_with_bytes: Option<(usize, u32)>,
    /// For each file: the given size, the largest end of any operation, and the largest end of a write.
    sizes: Vec<(Option<u64>, u64, u64)>,
}

impl Trace {
    /// Reads a trace.
    ///
    /// # Errors
    /// See [`TraceError`].
    pub fn parse(text: &[u8]) -> Result<Self, TraceError> {
        if text.len() as u64 > MAX_TRACE_BYTES {
            return Err(TraceError::TooLarge);
        }
        let mut reader = Reader::default();
        let mut section = Section::Start;
        let mut fields = Vec::new();
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let at = |problem| TraceError::Line { line: index + 1, problem };
            let line = std::str::from_utf8(line).map_err(|_| at(Problem::NotText))?.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            reader.line = index + 1;
            reader.line(line, &mut section, &mut fields).map_err(at)?;
        }
        reader.finish()
    }
}

impl Reader {
    fn line<'a>(
        &mut self,
        line: &'a str,
        section: &mut Section,
        fields: &mut Vec<Cow<'a, str>>,
    ) -> Result<(), Problem> {
        split(line, fields)?;
        if is_header(fields, SIZES_HEADER, None) {
            *section = Section::Sizes;
            return Ok(());
        }
        if is_header(fields, HEADER, Some("took_us")) {
            *section = Section::Records;
            return Ok(());
        }
        match section {
            Section::Start => Err(Problem::NoHeader),
            Section::Sizes => self.size(fields),
            Section::Records => self.record(fields),
        }
    }

    fn size(&mut self, fields: &[Cow<str>]) -> Result<(), Problem> {
        let [bytes, name] = fields else {
            return Err(Problem::Fields { found: fields.len(), wanted: "2" });
        };
        let bytes = number("file_bytes", bytes)?;
        let file = self.file(name)?;
        if bytes > MAX_FILE_BYTES {
            return Err(Problem::TooFar);
        }
        match self.sizes[file as usize].0.replace(bytes) {
            Some(_) => Err(Problem::SizeTwice(name.chars().take(80).collect())),
            None => Ok(()),
        }
    }

    fn record(&mut self, fields: &[Cow<str>]) -> Result<(), Problem> {
        let (found, wanted) = (fields.len(), "6, or 7 with took_us,");
        let [at, process, file, op_name, rest @ ..] = fields else {
            return Err(Problem::Fields { found, wanted });
        };
        let op = op(op_name)?;
        let none = Cow::Borrowed("");
        let [offset, bytes, took] = match rest {
            [] if !op.has_place() => [&none; 3],
            [offset, bytes] => [offset, bytes, &none],
            [offset, bytes, took] => [offset, bytes, took],
            _ => return Err(Problem::Fields { found, wanted }),
        };
        let is_left_out = |field: &str| field.is_empty() && !op.has_place();
        let place = |name, field: &str| {
            if is_left_out(field) { Ok(0) } else { number(name, field) }
        };
        let (offset, bytes) = (place("offset", offset)?, place("bytes", bytes)?);
        if bytes > MAX_OP_BYTES {
            return Err(Problem::OpTooLarge(bytes));
        }
        let end = offset.checked_add(bytes).filter(|end| *end <= MAX_FILE_BYTES);
        let end = end.ok_or(Problem::TooFar)?;
        let record = Record {
            at: time("time_us", at)?,
            took: if took.is_empty() { 0 } else { time("took_us", took)? },
            process: self.process(process)?,
            file: self.file(file)?,
            op,
            offset,
            bytes,
        };
        if self.trace.records.len() as u64 == MAX_OPERATIONS {
            return Err(Problem::TooManyOperations);
        }
        self.first.get_or_insert(self.line);
        if bytes > 0 && op.has_place() {
            self.first_with_bytes.get_or_insert((self.line, record.file));
            let (_, seen, written) = &mut self.sizes[record.file as usize];
            *seen = end.max(*seen);
            if op == TraceOp::Write {
                *written = end.max(*written);
            }
        }
        self.trace.records.push(record);
        Ok(())
    }

    fn file(&mut self, name: &str) -> Result<u32, Problem> {
        let files = &mut self.trace.files;
        let name = &*names::plain(name);
        let index = numbered(&mut self.files, "file", name)?;
        if index as usize == files.len() {
            files.push(TracedFile { name: name.to_owned(), bytes: 0 });
            self.sizes.push((None, 0, 0));
        }
        Ok(index)
    }

    fn process(&mut self, name: &str) -> Result<u32, Problem> {
        let name = &*names::plain(name);
        let index = numbered(&mut self.processes, "process", name)?;
        if index as usize == self.trace.processes.len() {
            self.trace.processes.push(name.to_owned());
        }
        Ok(index)
    }

    fn finish(mut self) -> Result<Trace, TraceError> {
        let first = self.first.ok_or(TraceError::Empty)?;
        for (file, (given, seen, written)) in self.trace.files.iter_mut().zip(self.sizes) {
            file.bytes = given.map_or(seen, |given| given.max(written));
        }
        check_sizes(&self.trace.files)?;
        let Some((line, file)) = self.first_with_bytes else {
            return Err(TraceError::Line { line: first, problem: Problem::NoBytes });
        };
        if !self.trace.records.iter().any(|record| self.trace.has_bytes(record)) {
            let TracedFile { name, bytes } = self.trace.files.swap_remove(file as usize);
            return Err(TraceError::Line {
                line,
                problem: Problem::BeyondTheEnd { file: name, bytes },
            });
        }
        self.trace.put_in_order();
        Ok(self.trace)
    }
}

fn is_header(fields: &[Cow<str>], header: &str, optional: Option<&str>) -> bool {
    let wanted = header.split(',').count();
    let is_long = optional.is_some() && fields.len() == wanted + 1;
    (fields.len() == wanted || is_long)
        && fields
            .iter()
            .map(|field| &**field)
            .eq(header.split(',').chain(optional).take(fields.len()))
}

/// The number of a name, a new one if it is new.
fn numbered(
    known: &mut HashMap<String, u32>,
    field: &'static str,
    name: &str,
) -> Result<u32, Problem> {
    if name.is_empty() {
        return Err(Problem::NoName(field));
    }
    if name.len() > MAX_NAME_BYTES {
        return Err(Problem::LongName(field));
    }
    if let Some(index) = known.get(name) {
        return Ok(*index);
    }
    if known.len() == MAX_NAMES {
        return Err(Problem::TooManyNames(field));
    }
    let index = known.len() as u32;
    known.insert(name.to_owned(), index);
    Ok(index)
}
