//! Tables in kubectl's style: headings in capitals, columns three blanks apart.

use comfy_table::{ContentArrangement, Table, presets};

/// Renders a table.
pub(crate) fn render<const N: usize>(headings: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    rows_of(headings, rows)
}

/// Renders a table of as many columns as there are headings.
pub(crate) fn rows_of(
    headings: impl IntoIterator<Item: AsRef<str>>,
    rows: impl IntoIterator<Item: IntoIterator<Item = String>>,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(headings.into_iter().map(|heading| heading.as_ref().to_uppercase()));
    table.add_rows(rows.into_iter().map(|row| row.into_iter().collect::<Vec<_>>()));
    for column in table.column_iter_mut() {
        column.set_padding((0, 3));
    }
    format!("{}\n", table.trim_fmt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_three_blanks_apart_and_lines_end_without_blanks() {
        let rows = [["c1", "true"], ["longer-name", ""]].map(|row| row.map(String::from));
        assert_eq!(render(["Name", "Accepted"], rows), "NAME          ACCEPTED\nc1            true\nlonger-name\n");
    }

    #[test]
    fn a_table_without_rows_is_its_headings() {
        assert_eq!(render(["Name", "Accepted"], []), "NAME   ACCEPTED\n");
    }
}
