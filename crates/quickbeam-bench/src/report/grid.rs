//! A table of texts, drawn in the terminal and on the page.

/// A table.
pub struct Grid {
    /// What it shows.
    pub title: String,
    /// The head of the first column.
    pub corner: &'static str,
    /// The heads of the others.
    pub columns: Vec<String>,
    /// Head and cells of each row.
    pub rows: Vec<GridRow>,
}

/// A row of a table.
pub struct GridRow {
    /// Its head.
    pub head: String,
    /// Its cells.
    pub cells: Vec<String>,
    /// Whether it holds published numbers and not measured ones.
    pub published: bool,
}
