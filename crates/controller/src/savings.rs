//! What reading whole files ahead has saved and cost on each file system, for `bowwave status`.
//!
//! The [account](readahead::Account) has the same figures of streams. Its credit bounds streams and regions; walks and
//! remembered starts have credits of their own, in files.

use std::collections::BTreeMap;

use readahead::{Account, Balance, DeviceCost};

use crate::ids::DeviceNumber;

/// A disk that reads many files in the order of their places takes about an eighth of the time of single reads.
const SWEEP_GAIN: f64 = 8.0;

/// How many times less the device works for each of many accesses requested together than for one that is waited for.
pub(crate) fn batch_gain(cost: &DeviceCost) -> f64 {
    cost.concurrency.max(SWEEP_GAIN)
}

/// Seconds of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Saved {
    /// Seconds that readers would have waited, and did not.
    pub(crate) earned_s: f64,
    /// Seconds that the device has worked, less the transfer of what was used.
    pub(crate) spent_s: f64,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Savings {
    of: BTreeMap<DeviceNumber, Saved>,
}

impl Saved {
    /// What streams have saved and spent.
    pub(crate) fn of(account: Account) -> Saved {
        let Balance { earned_s, spent_s, .. } = account.balance();
        Saved { earned_s, spent_s }
    }

    pub(crate) fn plus(self, other: Saved) -> Saved {
        Saved { earned_s: self.earned_s + other.earned_s, spent_s: self.spent_s + other.spent_s }
    }
}

impl Savings {
    /// Adds what somebody else has saved and spent.
    pub(crate) fn add(&mut self, other: &Savings) {
        for (dev, saved) in &other.of {
            let own = self.of.entry(*dev).or_default();
            *own = own.plus(*saved);
        }
    }

    /// Bytes were requested together, with so many accesses.
    pub(crate) fn spend(
        &mut self,
        dev: DeviceNumber,
        accesses: u32,
        bytes: u64,
        cost: &DeviceCost,
    ) {
        let access_s = f64::from(accesses) * cost.latency_s / batch_gain(cost);
        self.of.entry(dev).or_default().spent_s += access_s + transfer_s(bytes, cost);
    }

    /// Of these, `bytes` were used, for which readers would have waited `saved_s` longer.
    pub(crate) fn earn(&mut self, dev: DeviceNumber, saved_s: f64, bytes: u64, cost: &DeviceCost) {
        let saved = self.of.entry(dev).or_default();
        saved.earned_s += saved_s;
        saved.spent_s = (saved.spent_s - transfer_s(bytes, cost)).max(0.0);
    }

    pub(crate) fn on(&self, dev: DeviceNumber) -> Saved {
        self.of.get(&dev).copied().unwrap_or_default()
    }

    pub(crate) fn forget_volume(&mut self, dev: DeviceNumber) {
        self.of.remove(&dev);
    }
}

fn transfer_s(bytes: u64, cost: &DeviceCost) -> f64 {
    bytes as f64 / cost.bandwidth
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEV: DeviceNumber = DeviceNumber { major: 8, minor: 1 };

    #[test]
    fn what_is_used_earns_its_wait_and_costs_its_access() {
        let cost = DeviceCost { latency_s: 0.004, bandwidth: 1e6, concurrency: 16.0 };
        let mut savings = Savings::default();
        savings.spend(DEV, 100, 500_000, &cost);
        assert!((savings.on(DEV).spent_s - 0.525).abs() < 1e-9, "{savings:?}");
        savings.earn(DEV, 0.4, 500_000, &cost);
        let saved = savings.on(DEV);
        assert!((saved.earned_s - 0.4).abs() < 1e-9, "{savings:?}");
        assert!((saved.spent_s - 0.025).abs() < 1e-9, "{savings:?}");
        savings.forget_volume(DEV);
        assert_eq!(savings.on(DEV), Saved::default());
    }
}
