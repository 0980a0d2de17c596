//! Any input and any command, for property tests.

use controller::ids::{
    BackingId, CgroupId, DeviceNumber, FileKey, FileRef, OpenFile, StartId, StreamKey, Target,
    Ticket,
};
use controller::{
    Access, Advice, Attributes, Command, Completed, DeviceFacts, DirectoryRef, DiskStats, Entry,
    EntryKind, EntryRef, Failure, FileMiss, Head, Input, Interest, Kind, Listening, Listing,
    MemoryStats, Mounted, Origin, Passed, Place, RememberedFile, RememberedRange, Version,
    WindowOutcome, WindowSetting,
};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use readahead::behind::Span;
use readahead::{Cause, DeviceCost, Mark, Past};

/// Few devices, files and processes, so that some occur again.
fn device() -> impl Strategy<Value = DeviceNumber> {
    (0..3u32, 0..3u32).prop_map(|(major, minor)| DeviceNumber { major, minor })
}

fn file() -> impl Strategy<Value = FileKey> {
    (device(), prop_oneof![0..3u64, any::<u64>()]).prop_map(|(dev, ino)| FileKey { dev, ino })
}

fn file_ref() -> impl Strategy<Value = FileRef> {
    (file(), any::<u32>(), 0..4u32).prop_map(|(file, generation, tgid)| FileRef {
        file,
        generation,
        tgid,
    })
}

fn stream() -> impl Strategy<Value = StreamKey> {
    (file(), 0..4u32, any::<bool>()).prop_map(|(file, tgid, written)| StreamKey {
        file,
        tgid,
        written,
    })
}

/// Page numbers of files of up to 4 EiB, most of them near the beginning.
fn page() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 0..100_000u64, 1 => 0..1u64 << 50]
}

fn span() -> impl Strategy<Value = Span> {
    (page(), 0..10_000u64).prop_map(|(start, pages)| Span { start, end: start + pages })
}

fn ticket() -> impl Strategy<Value = Ticket> {
    prop_oneof![0..100u64, any::<u64>()].prop_map(Ticket)
}

fn backing() -> impl Strategy<Value = BackingId> {
    (0..3u32).prop_map(BackingId)
}

fn cgroup() -> impl Strategy<Value = CgroupId> {
    (0..3u32).prop_map(CgroupId)
}

fn target() -> impl Strategy<Value = Target> {
    prop_oneof![
        (0..4u64).prop_map(|open_file| Target::OpenFile(OpenFile(open_file))),
        (0..4u32, file()).prop_map(|(tgid, file)| Target::Mapping(tgid, file)),
        (0..4u32).prop_map(Target::Recovered),
    ]
}

fn cost() -> impl Strategy<Value = DeviceCost> {
    (1e-6..1.0f64, 1e5..1e10f64, 1.0..64.0f64).prop_map(|(latency_s, bandwidth, concurrency)| {
        DeviceCost { latency_s, bandwidth, concurrency }
    })
}

fn past() -> impl Strategy<Value = Past> {
    use Past::{Evicted, EvictedNext, EvictedUnused, Unknown};
    prop_oneof![Just(Unknown), Just(Evicted), Just(EvictedNext), Just(EvictedUnused)]
}

fn access() -> impl Strategy<Value = Access> {
    let kind =
        prop_oneof![Just(Kind::Miss), Just(Kind::KernelMark), Just(Kind::Mark), Just(Kind::Fault)];
    let advice = any::<(bool, bool, bool)>().prop_map(|(random, sequential, noreuse)| Advice {
        random,
        sequential,
        noreuse,
    });
    let whose = (kind, file_ref(), of((0..4u64).prop_map(OpenFile)), cgroup(), any::<bool>());
    let what = (page(), 1..1000u32, of(page()), page(), 0..4096u32, advice, past(), of(span()));
    (whose, what).prop_map(|((kind, of, open_file, cgroup, mapped), what)| {
        let (page, request_pages, previous, file_pages, kernel_window, advice, past, mark) = what;
        Access {
            kind,
            of,
            open_file,
            cgroup,
            page,
            request_pages,
            previous,
            file_bytes: file_pages << 12,
            kernel_window,
            mapped,
            advice,
            past,
            mark: mark.map(|mark| (mark.start, mark.end)),
        }
    })
}

fn passed() -> impl Strategy<Value = Passed> {
    let flags = any::<(bool, bool, bool)>();
    (file_ref(), cgroup(), page(), flags, span()).prop_map(|(of, cgroup, pages, flags, span)| {
        let (written, mapped, foreground) = flags;
        Passed { of, cgroup, file_bytes: pages << 12, written, mapped, foreground, span }
    })
}

fn disk_stats() -> impl Strategy<Value = DiskStats> {
    any::<[u32; 10]>().prop_map(|n| DiskStats {
        foreground_reads: n[0].into(),
        foreground_ns: n[1].into(),
        managed_reads: n[2].into(),
        managed_ns: n[3].into(),
        seek_reads: n[4].into(),
        seek_ns: n[5].into(),
        our_reads: n[6].into(),
        our_bytes: n[7].into(),
        our_bytes_in_flight: n[8].into(),
        bytes: n[9].into(),
    })
}

fn memory_stats() -> impl Strategy<Value = MemoryStats> {
    prop_oneof![
        any::<(Option<u64>, Option<u64>)>().prop_map(|(available_bytes, own_cgroup_bytes)| {
            MemoryStats::Machine { available_bytes, own_cgroup_bytes }
        }),
        (cgroup(), any::<Option<u64>>(), 0.0..100.0f64).prop_map(
            |(cgroup, file_bytes, stalled_percent)| MemoryStats::Cgroup {
                cgroup,
                file_bytes,
                stalled_percent
            }
        ),
    ]
}

fn mounted() -> impl Strategy<Value = Mounted> {
    let origin = prop_oneof![
        Just(Origin::Measured),
        Just(Origin::Learned),
        Just(Origin::Guessed),
        Just(Origin::Assumed)
    ];
    (device(), backing(), cost(), origin, any::<bool>()).prop_map(
        |(dev, backing, cost, origin, is_counted)| Mounted {
            dev,
            backing,
            device: DeviceFacts { cost, origin, is_counted },
        },
    )
}

fn directory() -> impl Strategy<Value = DirectoryRef> {
    (file(), any::<u32>()).prop_map(|(key, generation)| DirectoryRef { key, generation })
}

fn listing() -> impl Strategy<Value = Listing> {
    let kind =
        prop_oneof![Just(EntryKind::File), Just(EntryKind::Directory), Just(EntryKind::Other)];
    let entry = (any::<u64>(), any::<u32>(), any::<u32>(), kind)
        .prop_map(|(ino, name_rank, suffix, kind)| Entry { ino, name_rank, suffix, kind });
    (directory(), of(directory()), vec(entry, 0..5)).prop_map(|(directory, parent, entries)| {
        Listing { directory, parent, entries: entries.into() }
    })
}

fn file_miss() -> impl Strategy<Value = FileMiss> {
    (file_ref(), any::<u32>(), directory(), any::<u64>(), any::<u32>()).prop_map(
        |(of, cgroup, directory, file_bytes, request_pages)| FileMiss {
            of,
            cgroup: CgroupId(cgroup),
            directory,
            file_bytes,
            request_pages,
        },
    )
}

fn entry_ref() -> impl Strategy<Value = EntryRef> {
    (ticket(), any::<u32>()).prop_map(|(listing, entry)| EntryRef { listing, entry })
}

fn head() -> impl Strategy<Value = Head> {
    any::<(u32, bool)>().prop_map(|(most_pages, only_whole)| Head { most_pages, only_whole })
}

fn completed() -> impl Strategy<Value = Completed> {
    let failure = prop_oneof![
        Just(Failure::NotOpened),
        any::<i32>().prop_map(Failure::Errno),
        Just(Failure::Refused)
    ];
    let outcome = prop_oneof![
        any::<u32>().prop_map(|own_pages| WindowOutcome::Set { own_pages }),
        Just(WindowOutcome::Own),
        Just(WindowOutcome::Failed)
    ];
    let attributes = (".{0,20}", vec(".{0,10}", 0..3), ".{0,15}")
        .prop_map(|(path, cgroups, command)| Attributes { path, cgroups, command });
    prop_oneof![
        (ticket(), of(failure)).prop_map(|(ticket, failed)| Completed::Read { ticket, failed }),
        (backing(), of(cost())).prop_map(|(backing, cost)| Completed::Probed { backing, cost }),
        (of(ticket()), target(), outcome, any::<(u64, u64)>()).prop_map(
            |(ticket, target, outcome, during)| Completed::WindowSet {
                ticket,
                target,
                outcome,
                during
            }
        ),
        (ticket(), page(), page(), vec((span(), 0..1000u64), 0..4)).prop_map(
            |(ticket, dropped_pages, kept_pages, left)| Completed::Released {
                ticket,
                dropped_pages,
                kept_pages,
                left
            }
        ),
        ticket().prop_map(|ticket| Completed::WroteOut { ticket }),
        (ticket(), of(listing()))
            .prop_map(|(ticket, listing)| Completed::Listed { ticket, listing }),
        (ticket(), any::<u32>(), any::<u64>())
            .prop_map(|(ticket, files, bytes)| Completed::FilesRead { ticket, files, bytes }),
        (stream(), attributes)
            .prop_map(|(stream, attributes)| Completed::Described { stream, attributes }),
        (stream(), of(span())).prop_map(|(stream, span)| Completed::Touched { stream, span }),
        (any::<u32>(), file()).prop_map(|(entry, file)| Completed::LeftBehind { entry, file }),
        (any::<u32>(), vec(remembered(), 0..3))
            .prop_map(|(start, list)| Completed::Recalled { start: StartId(start), list }),
    ]
}

fn remembered() -> impl Strategy<Value = RememberedFile> {
    let version = of(any::<(u64, i64)>());
    let version =
        version.prop_map(|it| it.map(|(bytes, changed_ns)| Version { bytes, changed_ns }));
    let range = (span(), any::<u8>())
        .prop_map(|(pages, starts_in_vain)| RememberedRange { pages, starts_in_vain });
    (file(), any::<u32>(), version, vec(range, 0..3)).prop_map(
        |(file, generation, version, ranges)| RememberedFile { file, generation, version, ranges },
    )
}

/// Any input.
pub(crate) fn input() -> impl Strategy<Value = Input> {
    prop_oneof![
        4 => access().prop_map(Input::Access),
        2 => file_miss().prop_map(Input::FileMiss),
        2 => passed().prop_map(Input::Passed),
        1 => (backing(), disk_stats()).prop_map(|(id, stats)| Input::DiskStats(id, stats)),
        1 => memory_stats().prop_map(Input::MemoryStats),
        2 => completed().prop_map(Input::Completed),
        2 => mounted().prop_map(Input::Mounted),
        1 => device().prop_map(Input::Unmounted),
        1 => (0..4u32).prop_map(Input::Exited),
        1 => any::<(u32, u32)>().prop_map(|(start, tgid)| Input::Joined(StartId(start), tgid)),
        2 => Just(Input::Tick),
    ]
}

/// Any command.
pub(crate) fn command() -> impl Strategy<Value = Command> {
    let cause = (0..Cause::ALL.len()).prop_map(|number| Cause::ALL[number]);
    let mark = span().prop_map(|span| Mark { first: span.start, last: span.end });
    let listening = any::<(u64, u64, bool)>().prop_map(|(marked_chunks, muted_until, managed)| {
        Listening { marked_chunks, muted_until, managed }
    });
    let interest = of(prop_oneof![
        Just(Interest::All),
        any::<u32>().prop_map(|most_window| Interest::NotForward { most_window })
    ]);
    let setting = prop_oneof![
        Just(WindowSetting::Own),
        Just(WindowSetting::Abandoned),
        any::<u32>().prop_map(WindowSetting::Bounded),
        any::<u32>().prop_map(WindowSetting::Larger),
        Just(WindowSetting::NoLookAhead),
    ];
    let place = prop_oneof![
        directory().prop_map(Place::Known),
        (file(), entry_ref()).prop_map(|(key, at)| Place::Below(key, at)),
    ];
    let files = (ticket(), device(), 0..4u32, vec(entry_ref(), 0..5), head(), any::<u64>());
    let release = (ticket(), stream(), file_ref(), span(), span(), any::<(bool, bool)>());
    prop_oneof![
        (ticket(), file_ref(), span(), cause).prop_map(|(ticket, of, span, why)| Command::Read {
            ticket,
            of,
            span,
            why
        }),
        (file(), mark).prop_map(|(file, mark)| Command::Mark(file, mark)),
        (file(), listening).prop_map(|(file, listening)| Command::Listen(file, listening)),
        (device(), interest).prop_map(|(dev, interest)| Command::Watch(dev, interest)),
        (backing(), any::<bool>()).prop_map(|(id, counts)| Command::Count(id, counts)),
        backing().prop_map(Command::Probe),
        (backing(), cost()).prop_map(|(id, cost)| Command::Remember(id, cost)),
        (ticket(), target(), file(), of(file_ref()), any::<u32>(), setting).prop_map(
            |(ticket, target, file, of, kernel_window, setting)| Command::SetWindow {
                ticket,
                target,
                file,
                of,
                kernel_window,
                setting
            }
        ),
        any::<bool>().prop_map(Command::LookBehind),
        (ticket(), place, 0..4u32).prop_map(|(ticket, place, tgid)| Command::List {
            ticket,
            place,
            tgid
        }),
        ticket().prop_map(Command::ForgetListing),
        files.prop_map(|(ticket, dev, tgid, files, head, most_bytes)| {
            Command::ReadFiles { ticket, dev, tgid, files, head, most_bytes }
        }),
        (stream(), file_ref()).prop_map(|(stream, of)| Command::Describe(stream, of)),
        any::<u32>().prop_map(|start| Command::Recall(StartId(start))),
        (any::<u32>(), vec(remembered(), 0..3))
            .prop_map(|(start, files)| Command::KeepStart { start: StartId(start), files }),
        stream().prop_map(Command::Touched),
        stream().prop_map(Command::ForgetStream),
        any::<(u32, bool)>().prop_map(|(tgid, watched)| Command::WatchProcess(tgid, watched)),
        (ticket(), file_ref(), span()).prop_map(|(ticket, of, span)| Command::WriteOut {
            ticket,
            of,
            span
        }),
        release.prop_map(|(ticket, stream, of, span, counted, (drops_unused, unmaps))| {
            Command::Release { ticket, stream, of, span, counted, drops_unused, unmaps }
        }),
    ]
}
