//! What comes from the terminal.

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc::{self, Receiver};

use super::model::Key;

/// The most keys that wait to be taken; who types faster waits.
const KEYS: usize = 64;

/// What the terminal says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    Key(Key),
    /// The terminal has another size.
    Resized,
}

/// Listens to the terminal, until it is closed or nobody wants to hear.
pub(super) fn listen() -> Receiver<Input> {
    let (sender, receiver) = mpsc::channel(KEYS);
    // A thread of its own: it waits for keys, and nothing else can end that.
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            if input(&event).is_some_and(|input| sender.blocking_send(input).is_err()) {
                break;
            }
        }
    });
    receiver
}

fn input(event: &Event) -> Option<Input> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => of(key).map(Input::Key),
        Event::Resize(..) => Some(Input::Resized),
        _ => None,
    }
}

fn of(key: &KeyEvent) -> Option<Key> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    Some(match key.code {
        KeyCode::Char('c') if control => Key::Interrupt,
        KeyCode::Char(_) if control => return None,
        KeyCode::Char(character) => Key::Character(character),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        _ => return None,
    })
}
