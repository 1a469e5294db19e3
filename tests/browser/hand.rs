//! Two ways to use a page: the mouse, and the keyboard alone.

use crate::chrome::{Chrome, ENTER, SPACE};

/// Who uses the pages of a browser, and how.
pub struct Hand<'a> {
    chrome: &'a Chrome,
    has_mouse: bool,
}

impl<'a> Hand<'a> {
    /// Clicks, and types where it has clicked.
    pub fn with_mouse(chrome: &'a Chrome) -> Self {
        Self {
            chrome,
            has_mouse: true,
        }
    }

    /// Goes from one element to the next with Tab, and never touches the mouse.
    pub fn with_keyboard(chrome: &'a Chrome) -> Self {
        Self {
            chrome,
            has_mouse: false,
        }
    }

    /// Follows the link, presses the button or unfolds the summary whose text begins so.
    pub fn follow(&self, text: &str) {
        self.go(text, ENTER);
    }

    /// Chooses the option whose label begins so.
    pub fn choose(&self, label: &str) {
        self.go(label, SPACE);
    }

    /// Writes into the field whose label begins so.
    pub fn write(&self, label: &str, text: &str) {
        if self.has_mouse {
            self.chrome.click_text(label);
        } else {
            self.chrome.tab_to(label);
        }
        self.chrome.press(text);
    }

    fn go(&self, text: &str, key: char) {
        if self.has_mouse {
            self.chrome.click_text(text);
        } else {
            self.chrome.tab_to(text);
            self.chrome.press(&key.to_string());
        }
    }
}
