//! Numbers that describe themselves: each has one name, one explanation and one kind, wherever it is shown.

/// How a number changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A total since the start, which only grows.
    Counter,
    /// A value that may grow and shrink.
    Gauge,
}

/// One number of a struct that [`figures!`](crate::figures) declares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The field's name. It ends in the unit: `_bytes`, `_s`, `_ms` or `_mb_s`; without one, it is a count.
    pub name: &'static str,
    /// The field's documentation, in one line.
    pub help: &'static str,
    /// How it changes.
    pub kind: Kind,
    /// Its value. Counts above 2^53 are rounded.
    pub value: f64,
}

/// Declares a struct. Its method `figures` returns a [`Figure`] for each field marked `as Counter` or `as Gauge`; its
/// constant `HELP` is its documentation in one line.
///
/// ```
/// readahead::figures! {
///     /// Of one disk.
///     #[derive(Default)]
///     pub struct Disk {
///         /// Not a number.
///         pub name: String,
///         /// How many reads
///         /// there were.
///         pub reads: u64 as Counter,
///         /// How long one read takes.
///         pub read_ms: f64 as Gauge,
///     }
/// }
///
/// let disk = Disk { reads: 7, read_ms: 0.5, ..Disk::default() };
/// let told: Vec<_> = disk.figures().map(|figure| (figure.name, figure.help, figure.value)).collect();
/// let reads = ("reads", "How many reads there were.", 7.0);
/// assert_eq!(told, [reads, ("read_ms", "How long one read takes.", 0.5)]);
/// assert_eq!((Disk::HELP, &*disk.name), ("Of one disk.", ""));
/// ```
#[macro_export]
macro_rules! figures {
    (
        $(#[doc = $about:literal])+
        #[derive $derived:tt]
        $(#[serde $serde_of:tt])?
        pub struct $of:ident {
            $(
                $(#[doc = $help:literal])+
                $(#[serde $serde:tt])*
                pub $name:ident: $type:ty $(as $kind:ident)?,
            )*
        }
    ) => {
        $(#[doc = $about])+
        #[derive $derived]
        $(#[serde $serde_of])?
        pub struct $of {
            $(
                $(#[doc = $help])+
                $(#[serde $serde])*
                pub $name: $type,
            )*
        }

        impl $of {
            /// What it is, in one line.
            pub const HELP: &str = concat!($($about),+).trim_ascii_start();

            /// Its numbers, in the order of the fields.
            pub fn figures(&self) -> impl Iterator<Item = $crate::Figure> {
                let texts = [$((stringify!($name), concat!($($help),+))),*];
                let values = [
                    $(None $(.or(Some(($crate::figure::Kind::$kind, self.$name as f64))))?),*
                ];
                texts.into_iter().zip(values).filter_map(|((name, help), value)| {
                    let (kind, value) = value?;
                    Some($crate::Figure { name, help: help.trim_ascii_start(), kind, value })
                })
            }
        }
    };
}
