//! The descriptions of the experiments: `experiments/NAME.toml`.

macro_rules! descriptions {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../../../experiments/", $name, ".toml")))),*]
    };
}

/// Every description by its table's name, in the order of [`TABLES`](crate::TABLES).
pub(super) const DESCRIPTIONS: [(&str, &str); 15] = descriptions! {
    "blkid-2011" "copies-2005" "demo" "desktop-2006" "drop-behind-2007" "field" "parallel-streams-2003"
    "ramp-2005" "flash-2011" "random-reads-2006" "rules" "run-lengths" "servers-2006" "slow-streams-2005" "trees"
};

/// The title of the table of that name.
pub fn title(name: &str) -> Option<String> {
    let (_, text) = DESCRIPTIONS.iter().find(|(experiment, _)| *experiment == name)?;
    Some(text.parse::<toml::Table>().ok()?.get("title")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_has_a_title() {
        for (name, _) in crate::TABLES {
            assert!(title(name).is_some_and(|title| title.len() > 10), "{name}");
        }
        assert_eq!(title("no-such-table"), None);
    }
}
