//! A report as text that fits a terminal. Pure.

use super::report::{Cluster, Comparison, Difference, Group, Report, Score, UNDECIDED};
use crate::output::{table, wrap::wrapped};

/// How many names are listed in a line.
const NAMES: usize = 10;

/// Renders a report.
pub(super) fn render(report: &Report) -> String {
    let what_if = report.what_if.as_ref().map(comparison).unwrap_or_default();
    let clusters = if report.in_detail { report.clusters.iter().map(detail).collect() } else { overview(report) };
    let stored = report.stored.as_ref().map(|difference| self::difference(difference, report)).unwrap_or_default();
    let notes: String = report.notes.iter().map(|note| wrapped("", note)).collect();
    let parts = [what_if, head(report), clusters, stored + &notes];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

fn head(report: &Report) -> String {
    let Report { namespace, name, selected, number_of_all_clusters: all, .. } = report;
    let wanted = match report.number_of_clusters {
        Some(number) => format!("spec.numberOfClusters is {number}"),
        None => "it wants all that fit".to_owned(),
    };
    let selects =
        wrapped("", &format!("Placement {namespace}/{name} selects {} of {all} clusters; {wanted}.", selected.len()));
    let sets = match report.cluster_sets.as_slice() {
        [] => "No cluster set that the placement may select from is bound to its namespace.".to_owned(),
        [set] => format!("It may select from cluster set {set}."),
        sets => format!("It may select from cluster sets {}.", names(sets)),
    };
    let problem = report.problem.as_ref().map(|problem| wrapped("Problem: ", problem)).unwrap_or_default();
    selects + &wrapped("", &sets) + &problem
}

/// A table of the clusters with a rank, and the reasons of the others.
fn overview(report: &Report) -> String {
    let ranked: Vec<_> = report.clusters.iter().filter(|cluster| cluster.rank.is_some()).collect();
    let table = if ranked.is_empty() { String::new() } else { ranks(&ranked, report) };
    let removed: Vec<_> = report.clusters.iter().filter(|cluster| !cluster.selected).collect();
    let removed = section("Not selected:", removed.iter().map(|cluster| reason(cluster, width(&removed))));
    let count: usize = report.others.iter().map(|group| group.count).sum();
    let title = format!("Not selected ({count}; --all shows each, --cluster one in detail):");
    let others = section(&title, report.others.iter().map(group));
    [table, removed, others].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

fn section(title: &str, entries: impl Iterator<Item = String>) -> String {
    let entries: String = entries.collect();
    if entries.is_empty() { entries } else { format!("{title}\n{entries}") }
}

fn width(clusters: &[&Cluster]) -> usize {
    clusters.iter().map(|cluster| cluster.name.len()).max().unwrap_or_default()
}

fn ranks(ranked: &[&Cluster], report: &Report) -> String {
    let columns = columns(report);
    let headings = ["Rank", "Cluster", "Selected", "Score"].map(str::to_owned).into_iter();
    let row = |cluster: &&Cluster| {
        let selected = if cluster.selected { "yes" } else { "no" };
        let number = |number: Option<i64>| number.map(|number| number.to_string()).unwrap_or_default();
        let rank = cluster.rank.map(|rank| rank.to_string()).unwrap_or_default();
        let start = [rank, cluster.name.clone(), selected.to_owned(), number(cluster.score)];
        start.into_iter().chain(cluster.scores.iter().map(|score| score.score.to_string())).collect::<Vec<_>>()
    };
    let headings = headings.chain(columns.iter().map(|(heading, _)| heading.clone()));
    let table = table::rows_of(headings.collect::<Vec<_>>(), ranked.iter().map(row));
    table + &sum(&columns, report)
}

/// A short heading for each prioritizer, and what it abbreviates.
fn columns(report: &Report) -> Vec<(String, Option<&str>)> {
    let mut addons = 0;
    let column = |name: &str| match name {
        "ResourceAllocatableCPU" => "CPU".to_owned(),
        "ResourceAllocatableMemory" => "Memory".to_owned(),
        name if name.starts_with("AddOn/") => {
            addons += 1;
            format!("AddOn{addons}")
        }
        name => name.to_owned(),
    };
    let headings: Vec<_> = report.prioritizers.iter().map(|one| one.name.as_str()).map(column).collect();
    let full = report.prioritizers.iter().map(|one| one.name.as_str());
    headings.into_iter().zip(full).map(|(heading, full)| (heading.clone(), (heading != full).then_some(full))).collect()
}

/// How the score is computed from the columns.
fn sum(columns: &[(String, Option<&str>)], report: &Report) -> String {
    if columns.is_empty() {
        return wrapped("", "No prioritizer counts, so the order is that of the names.");
    }
    let term = |((heading, full), one): (&(String, Option<&str>), &super::report::Prioritizer)| {
        let full = full.map(|full| format!(" ({full})")).unwrap_or_default();
        format!("{} x {}{full}", one.weight, heading.to_uppercase())
    };
    let terms: Vec<_> = columns.iter().zip(&report.prioritizers).map(term).collect();
    wrapped("", &format!("SCORE = {}", terms.join(" + ")))
}

/// Why a cluster is not selected, and what would change that.
fn reason(cluster: &Cluster, width: usize) -> String {
    let start = format!("{:width$}   ", cluster.name);
    let removed_by = cluster.removed_by.unwrap_or_default();
    let reason = format!("{removed_by}: {}", cluster.reason.as_deref().unwrap_or_default());
    let change = change(cluster).map(|change| wrapped(&format!("{:width$}   to select it: ", ""), &change));
    wrapped(&start, &reason) + &change.unwrap_or_default()
}

/// What would select a cluster; `None` if it is selected, or nothing is decided.
fn change(cluster: &Cluster) -> Option<String> {
    let points = cluster.points_needed.map(|points| format!(", or raise its score by {points}"));
    match &cluster.change {
        _ if cluster.selected || cluster.removed_by == Some(UNDECIDED) => None,
        Some(changes) => Some(changes.join("; ") + &points.unwrap_or_default()),
        None => Some(
            "no change of labels, claims, sets, tolerations or spec.numberOfClusters is known that would select it"
                .to_owned(),
        ),
    }
}

fn group(group: &Group) -> String {
    let Group { removed_by, reason, count, examples } = group;
    let more = if *count > examples.len() { format!(" and {} more", count - examples.len()) } else { String::new() };
    wrapped(&format!("{count:>6}   "), &format!("{removed_by}: {reason}"))
        + &wrapped("         ", &format!("{}{more}", examples.join(", ")))
}

/// All about one cluster.
fn detail(cluster: &Cluster) -> String {
    let lines = details(cluster);
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let line = |(name, text): &(String, String)| wrapped(&format!("  {name:width$}  "), text);
    format!("{}\n", cluster.name) + &lines.iter().map(line).collect::<String>()
}

fn details(cluster: &Cluster) -> Vec<(String, String)> {
    let line = |name: &str, text: String| (name.to_owned(), text);
    let reason = || cluster.reason.clone().unwrap_or_default();
    let mut lines = vec![line("selected", if cluster.selected { "yes" } else { "no" }.to_owned())];
    lines.extend(cluster.removed_by.map(|removed_by| line(removed_by, reason())));
    lines.extend(cluster.tolerated_until.map(|end| line("tolerated until", end.to_string())));
    let score =
        |score: &Score| line(&score.prioritizer, format!("{} x {}: {}", score.weight, score.score, score.input));
    lines.extend(cluster.scores.iter().map(score));
    let rank = cluster.rank.zip(cluster.score);
    lines.extend(rank.map(|(rank, score)| line("score", format!("{score}, which is rank {rank}"))));
    lines.extend(change(cluster).map(|change| line("to select it", change)));
    lines
}

fn comparison(comparison: &Comparison) -> String {
    let Comparison { changes, now, then, gained, lost } = comparison;
    let line = |name: &str, clusters: &[String]| wrapped(&format!("  {name:14}"), &names(clusters));
    let lines = [("selected now", now), ("selected then", then), ("gained", gained), ("lost", lost)];
    let lines: String = lines.into_iter().map(|(name, clusters)| line(name, clusters)).collect();
    wrapped("What if ", &changes.join(" ")) + &lines
}

fn difference(difference: &Difference, report: &Report) -> String {
    let Difference { surplus, missing } = difference;
    let part = |what: &str, clusters: &[String]| (!clusters.is_empty()).then(|| format!("{what} {}", names(clusters)));
    let parts = [part("they list also", surplus), part("they do not list", missing)];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    let text =
        format!("The PlacementDecisions of {} in the hub differ from this: {}.", report.name, parts.join(", and "));
    wrapped("", &text)
}

/// The first names, and how many there are more.
fn names(names: &[String]) -> String {
    let shown = names.iter().take(NAMES).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES) {
        _ if names.is_empty() => "none".to_owned(),
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
