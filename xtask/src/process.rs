//! What a process holds, as the kernel tells.

use std::path::Path;

/// How the kernel counts time in `/proc`.
const TICKS_PER_SECOND: f64 = 100.0;

/// What a process holds at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Held {
    pub(crate) memory_mb: u64,
    pub(crate) files: usize,
    pub(crate) cpu_seconds: f64,
}

/// Looks at a process; one that is gone holds nothing.
pub(crate) fn look(pid: u32) -> Held {
    let process = Path::new("/proc").join(pid.to_string());
    let status = std::fs::read_to_string(process.join("status")).unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let resident_kb: u64 =
        resident.and_then(|text| text.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0);
    let stat = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
    // User and system time are the 12th and 13th field behind the name, which ends with a bracket.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks: f64 = fields.split_whitespace().skip(11).take(2).flat_map(str::parse::<f64>).sum();
    Held {
        memory_mb: resident_kb / 1000,
        files: std::fs::read_dir(process.join("fd")).map_or(0, Iterator::count),
        cpu_seconds: ticks / TICKS_PER_SECOND,
    }
}
