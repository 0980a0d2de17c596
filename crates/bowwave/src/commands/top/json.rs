//! One JSON object for each interval.

use serde_json::{Map, Value, json};
use top::table::{self, Of};
use top::{Activity, BINS, By, Row, View};

use super::Args;
use super::session::{Interval, Session};

/// The version of the objects. It grows when a field is removed or changes its meaning.
const SCHEMA: u32 = 1;

/// The first line.
pub(super) fn ready() -> Value {
    json!({ "schema_version": SCHEMA, "ready": true })
}

/// An interval.
pub(super) fn of(interval: &Interval, session: &Session, args: &Args) -> Value {
    let View { sort, filter, .. } = args.view();
    let all = |by, filter| table::rows(&interval.uses, session.names(), by, sort, filter);
    let most = args.rows.unwrap_or(usize::MAX);
    let rows = |by| -> Value {
        all(by, &filter).iter().take(most).map(|row| Value::Object(object(row, session))).collect()
    };
    json!({
        "schema_version": SCHEMA,
        "uptime_s": session.uptime_s(),
        "interval_s": interval.length.as_secs_f64(),
        "seen_share": interval.seen,
        "uncounted": interval.uncounted,
        "notes": session.notes(interval),
        "total": figures(&table::total(&all(By::Process, ""))),
        "processes": rows(By::Process),
        "streams": rows(By::Stream),
        "files": rows(By::File),
        "devices": rows(By::Device),
        "cgroups": rows(By::Cgroup),
    })
}

fn object(row: &Row, session: &Session) -> Map<String, Value> {
    let names = session.names();
    let about = match &row.of {
        Of::Process(pid) => {
            let process = names.processes.get(pid).cloned().unwrap_or_default();
            json!({ "pid": pid, "name": process.name, "cgroup": process.cgroup })
        }
        Of::Stream(key) => json!({
            "pid": key.pid,
            "name": names.processes.get(&key.pid).map_or("", |process| &process.name),
            "path": names.of_file(key.file),
            "volume": key.file.dev.to_string(),
            "inode": key.file.ino,
        }),
        Of::File(file) => json!({
            "path": row.name,
            "volume": file.dev.to_string(),
            "inode": file.ino,
            "managed": names.managed(*file, &row.activity),
        }),
        Of::Device(dev) => json!({ "name": row.name, "volume": dev.to_string() }),
        Of::Cgroup(path) => json!({ "path": path }),
    };
    let mut object = figures(&row.activity);
    object.extend(about.as_object().cloned().unwrap_or_default());
    object
}

/// The figures that [`Activity`] declares, and those that follow from them.
fn figures(activity: &Activity) -> Map<String, Value> {
    let declared = serde_json::to_value(activity).unwrap_or_default();
    let mut figures = declared.as_object().cloned().unwrap_or_default();
    figures.insert("hit_share".into(), json!(activity.hit_share()));
    figures.insert("pattern".into(), json!(activity.steps.pattern()));
    figures.insert("stall_median_ms".into(), json!(activity.latencies.percentile_ms(50)));
    figures.insert("stall_p99_ms".into(), json!(activity.latencies.percentile_ms(99)));
    let bins = (0..BINS).filter(|bin| activity.latencies.bins[*bin] > 0);
    let bins =
        bins.map(|bin| json!({ "below_us": 2u64 << bin, "stalls": activity.latencies.bins[bin] }));
    figures.insert("latencies".into(), bins.collect());
    figures
}
