//! Flags that name clusters, and lists of names in general.

use clap::Args;

use crate::failure::Failure;

/// Flags that choose clusters.
#[derive(Args, Debug)]
pub(crate) struct ClusterArgs {
    /// Name of a cluster
    #[arg(short, long, value_name = "NAME")]
    cluster: Option<String>,
    /// Names of clusters, separated by commas
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    clusters: Vec<String>,
}

impl ClusterArgs {
    /// The clusters of both flags, each once; none is a failure.
    pub(crate) fn required(&self) -> Result<Vec<String>, Failure> {
        match self.given()? {
            names if names.is_empty() => {
                Err(Failure::new("either --cluster or --clusters needs to be set").hint(EXAMPLE))
            }
            names => Ok(names),
        }
    }

    /// The clusters of both flags, each once, if any.
    pub(crate) fn given(&self) -> Result<Vec<String>, Failure> {
        distinct(self.clusters.iter().chain(&self.cluster))
            .ok_or_else(|| Failure::new("--clusters cannot be set as an empty value").hint(EXAMPLE))
    }
}

const EXAMPLE: &str = "name them, for example: --clusters cluster1,cluster2";

/// Each name once, without blanks around it; `None` if one of them is empty.
pub(crate) fn distinct<'a>(names: impl IntoIterator<Item = &'a String>) -> Option<Vec<String>> {
    let mut distinct = Vec::new();
    for name in names.into_iter().map(|name| name.trim()) {
        if name.is_empty() {
            return None;
        }
        if !distinct.iter().any(|known| known == name) {
            distinct.push(name.to_owned());
        }
    }
    Some(distinct)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        clusters: ClusterArgs,
    }

    fn parse(line: &str) -> ClusterArgs {
        Line::try_parse_from(["x"].into_iter().chain(line.split_whitespace())).unwrap().clusters
    }

    #[test]
    fn clusters_of_both_flags_are_taken_once() {
        assert_eq!(parse("--clusters b,a --clusters c -c a").required().unwrap(), ["b", "a", "c"]);
        assert_eq!(parse("--cluster a").required().unwrap(), ["a"]);
    }

    #[test]
    fn no_cluster_is_refused_only_where_one_is_needed() {
        assert!(parse("").required().unwrap_err().to_string().contains("needs to be set"));
        assert!(parse("").given().unwrap().is_empty());
    }

    #[test]
    fn an_empty_name_is_refused() {
        for line in ["--clusters a,,b", "--clusters="] {
            assert!(parse(line).given().unwrap_err().to_string().contains("empty value"), "{line}");
        }
    }
}
