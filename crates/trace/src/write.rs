//! Trace to text: what is written reads back as the same trace.

use std::fmt;

use readahead::Nanos;

use crate::{HEADER, SIZES_HEADER, Trace};

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{SIZES_HEADER}")?;
        for file in &self.files {
            writeln!(f, "{},{}", file.bytes, Quoted(&file.name))?;
        }
        writeln!(f, "{HEADER},took_us")?;
        for record in &self.records {
            let process = Quoted(&self.processes[record.process as usize]);
            let file = Quoted(&self.files[record.file as usize].name);
            write!(f, "{},{process},{file},", Micros(record.at))?;
            write!(f, "{},{},{}", record.op.name(), record.offset, record.bytes)?;
            writeln!(f, ",{}", Micros(record.took))?;
        }
        Ok(())
    }
}

/// Microseconds, with decimals where there are any.
struct Micros(Nanos);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0 / 1000)?;
        match self.0 % 1000 {
            0 => Ok(()),
            below => write!(f, ".{below:03}"),
        }
    }
}

/// A name, in double quotes if it would not be read back without.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.contains(['"', ',']) {
            return f.write_str(self.0);
        }
        write!(f, "\"{}\"", self.0.replace('"', "\"\""))
    }
}
