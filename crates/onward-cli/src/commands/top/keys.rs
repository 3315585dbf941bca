//! Input from the terminal.

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc::{self, Receiver};

use super::model::Key;

/// The largest number of keys in the channel. When it is full, the thread that reads the terminal
/// waits.
const KEYS: usize = 64;

/// An event from the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    Key(Key),
    /// The size of the terminal changed.
    Resized,
}

/// Listens to the terminal until it is closed or the receiver is dropped.
pub(super) fn listen() -> Receiver<Input> {
    let (sender, receiver) = mpsc::channel(KEYS);
    // Reading keys blocks, and nothing else can interrupt it, so it needs a separate thread.
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
