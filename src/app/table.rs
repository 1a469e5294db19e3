//! Tables for people: aligned, without borders, cut only where a terminal is too narrow.

use std::io::{self, IsTerminal};

use comfy_table::presets::NOTHING;
use comfy_table::{Attribute, CellAlignment, Color, ContentArrangement, Row};
use jiff::Timestamp;

use super::output::Style;
use super::words::{Tone, clean};

/// Fewest columns that a table is cut to: a terminal with fewer, or one that says 0, gets all and wraps it as it likes.
const NARROWEST: u16 = 40;

/// What is drawn on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Screen {
    /// Colors.
    pub(super) style: Style,
    /// Columns of the terminal; `None` where nothing is to be cut.
    pub(super) width: Option<u16>,
    /// More columns are wanted.
    pub(super) wide: bool,
    /// What relative times are seen from.
    pub(super) now: Timestamp,
}

impl Screen {
    /// Looks at standard output and at the clock.
    pub(super) fn of_output(wide: bool) -> Self {
        let out = io::stdout();
        let width = out
            .is_terminal()
            .then(|| comfy_table::Table::new().width())
            .flatten();
        Self {
            style: Style::of(&out),
            // Who asks for more columns gets them whole.
            width: width.filter(|width| !wide && *width >= NARROWEST),
            wide,
            now: Timestamp::now(),
        }
    }

    /// Paints a text.
    pub(super) fn paint(&self, text: &str, tone: Tone) -> String {
        match tone {
            Tone::Plain => text.to_owned(),
            Tone::Good => self.style.green(text),
            Tone::Doubtful => self.style.yellow(text),
            Tone::Bad => self.style.red(text),
        }
    }

    /// Draws lines of names and values, the values aligned below each other.
    pub(super) fn pairs(&self, pairs: &[(&str, String)]) -> String {
        let longest = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let mut text = String::new();
        for (name, value) in pairs {
            let gap = " ".repeat(longest + 2 - name.len());
            text.push_str(&format!("{}{gap}{value}\n", self.style.bold(name)));
        }
        text
    }
}

/// One cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    /// Makes a cell with a tone.
    pub(super) fn toned(text: impl AsRef<str>, tone: impl Into<Tone>) -> Self {
        Self {
            text: clean(text.as_ref()),
            tone: tone.into(),
        }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::toned(text, Tone::Plain)
    }
}

/// A column's heading, and on which side its cells stand.
#[derive(Clone, Copy, Debug)]
pub(super) enum Column {
    /// Words.
    Left(&'static str),
    /// Numbers.
    Right(&'static str),
}

/// A table.
#[derive(Debug)]
pub(super) struct Table<'s> {
    screen: &'s Screen,
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl<'s> Table<'s> {
    /// Makes an empty table; the columns `more` only where they are wanted.
    pub(super) fn new(screen: &'s Screen, columns: &[Column], more: &[Column]) -> Self {
        let mut columns = columns.to_vec();
        if screen.wide {
            columns.extend_from_slice(more);
        }
        Self {
            screen,
            columns,
            rows: Vec::new(),
        }
    }

    /// Adds a row; of `more` nothing where it is not wanted.
    pub(super) fn row<const N: usize, const M: usize>(
        &mut self,
        cells: [Cell; N],
        more: impl FnOnce() -> [Cell; M],
    ) {
        let mut row = cells.to_vec();
        if self.screen.wide {
            row.extend(more());
        }
        self.rows.push(row);
    }

    /// Draws it: a line of headings, and one line a row. `nothing` stands for a table without rows.
    pub(super) fn draw(&self, nothing: &str) -> String {
        if self.rows.is_empty() {
            return format!("{nothing}\n");
        }
        let mut table = comfy_table::Table::new();
        table.load_style(NOTHING).force_no_tty();
        if self.screen.style.is_on() {
            table.enforce_styling().style_text_only();
        }
        if let Some(width) = self.screen.width {
            table
                .set_content_arrangement(ContentArrangement::Dynamic)
                .set_width(width)
                .set_truncation_indicator("…");
        }
        let headings = self.columns.iter().map(|column| {
            let (Column::Left(text) | Column::Right(text)) = column;
            comfy_table::Cell::new(text).add_attribute(Attribute::Bold)
        });
        let mut headings = Row::from(headings.collect::<Vec<_>>());
        headings.max_height(1);
        table.set_header(headings);
        for row in &self.rows {
            let cells = row.iter().map(paint);
            let mut row = Row::from(cells.collect::<Vec<_>>());
            row.max_height(1);
            table.add_row(row);
        }
        let last = self.columns.len().saturating_sub(1);
        for (at, (column, kind)) in table.column_iter_mut().zip(&self.columns).enumerate() {
            // Two blanks between columns, none at the margins.
            column.set_padding((0, if at == last { 0 } else { 2 }));
            if let Column::Right(_) = kind {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        format!("{}\n", table.trim_fmt())
    }
}

/// Gives a cell its color.
fn paint(cell: &Cell) -> comfy_table::Cell {
    let drawn = comfy_table::Cell::new(&cell.text);
    let color = match cell.tone {
        Tone::Plain => return drawn,
        Tone::Good => Color::DarkGreen,
        Tone::Doubtful => Color::DarkYellow,
        Tone::Bad => Color::DarkRed,
    };
    drawn.fg(color).add_attribute(Attribute::Bold)
}

#[cfg(test)]
impl Screen {
    /// A screen without colors, at a moment.
    pub(super) fn plain(width: Option<u16>, wide: bool) -> Self {
        Self {
            style: Style::plain(),
            width,
            wide,
            now: "2026-11-21T12:00:00Z".parse().unwrap(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(screen: &Screen) -> String {
        let mut table = Table::new(
            screen,
            &[
                Column::Left("NAME"),
                Column::Right("ANSWERS/S"),
                Column::Left("STATE"),
            ],
            &[Column::Left("REASON")],
        );
        table.row(
            [
                "aws-use1".into(),
                "1,200".into(),
                Cell::toned("up", Tone::Good),
            ],
            || ["-".into()],
        );
        table.row(
            [
                "on\u{1b}[2Jprem".into(),
                "3".into(),
                Cell::toned("down", Tone::Bad),
            ],
            || ["a long story that goes on and on".into()],
        );
        table.draw("none")
    }

    #[test]
    fn columns_stand_below_each_other() {
        assert_eq!(
            sample(&Screen::plain(None, false)),
            "NAME        ANSWERS/S  STATE\n\
             aws-use1        1,200  up\n\
             on\u{fffd}[2Jprem          3  down\n"
        );
    }

    #[test]
    fn wide_has_more_columns() {
        let text = sample(&Screen::plain(None, true));
        assert!(
            text.contains("REASON") && text.contains("on and on"),
            "{text}"
        );
    }

    #[test]
    fn only_a_terminal_cuts_and_rows_stay_one_line() {
        let text = sample(&Screen::plain(Some(40), true));
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 40),
            "{text}"
        );
        assert!(text.contains('…'), "{text}");
    }

    #[test]
    fn colors_only_where_wanted() {
        let mut screen = Screen::plain(None, false);
        assert!(!sample(&screen).contains('\u{1b}'));
        screen.style = Style::colored();
        let text = sample(&screen);
        assert!(text.contains('\u{1b}') && text.contains("up"), "{text:?}");
        assert!(
            !text.contains("[2J\u{1b}") && !text.contains("\u{1b}[2J"),
            "{text:?}"
        );
    }

    #[test]
    fn an_empty_table_says_so() {
        let screen = Screen::plain(None, false);
        assert_eq!(
            Table::new(&screen, &[Column::Left("NAME")], &[]).draw("no clusters"),
            "no clusters\n"
        );
    }
}
