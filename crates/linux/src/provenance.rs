//! The kernel and date that every measured figure names, next to its device.

/// Release of the running kernel.
pub fn kernel() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// Today's date as YYYY-MM-DD (UTC).
pub fn date() -> String {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime).tv_sec;
    civil(now.div_euclid(86_400))
}

/// Turns days since 1970-01-01 into a date (Howard Hinnant's algorithm).
fn civil(days: i64) -> String {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right_across_leap_days() {
        assert_eq!(civil(0), "1970-01-01");
        assert_eq!(civil(19_782), "2024-02-29");
        assert_eq!(civil(20_778), "2026-11-21");
    }
}
