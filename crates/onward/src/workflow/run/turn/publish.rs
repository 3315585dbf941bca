//! The events that the end of a step publishes.

use bytes::Bytes;

use super::places::Part;
use super::scope::NoValue;
use super::{NotRead, Turn, number};
use crate::workflow::expression::Value;
use crate::workflow::run::decision::Published;
use crate::workflow::run::schemas;
use crate::workflow::run::state::event::RunEvent;
use crate::workflow::run::state::json::{Json, written};
use crate::workflow::run::state::step_state::StepState;
use crate::workflow::template::{Delivery, Publication, PublishedEnd};

/// The ending of the name of an event whose payload is wrong.
const INVALID: &str = ".invalid";

impl Turn<'_> {
    /// Publishes the events of a step's end.
    pub(super) fn publish(&mut self, step: usize) -> Result<(), NotRead> {
        let publications = self.step(step).map_or(&[][..], |step| &step.publishes);
        let state = self.state.step_state(step);
        for (place, publication) in publications.iter().enumerate().filter(|(_, one)| is_published(one.when, state)) {
            let Some((name, payload)) = self.published(step, place, publication)? else { continue };
            if !self.has_room_to_publish() {
                self.left_out += 1;
                continue;
            }
            if publication.delivery == Delivery::Log {
                let (name, payload) = (name.clone(), Json::new(payload.clone()));
                self.record(RunEvent::Published { step: number(step), name, payload });
            }
            self.effects.publishes.push(Published { step, name, payload, delivery: publication.delivery.clone() });
        }
        Ok(())
    }

    fn has_room_to_publish(&self) -> bool {
        let published = &self.effects.publishes;
        let bytes: usize = published.iter().map(|event| event.payload.len()).sum();
        published.len() < self.room.publishes && bytes < self.room.published_bytes
    }

    /// Returns the name and the payload of an event, unless its `if` is false. A wrong payload is
    /// published under another name, and fails nothing.
    fn published(
        &self,
        step: usize,
        place: usize,
        publication: &Publication,
    ) -> Result<Option<(String, Bytes)>, NotRead> {
        let payload = match self.payload_of(step, publication) {
            Ok(Some(payload)) => payload,
            Ok(None) => return Ok(None),
            Err(trouble) => {
                let error = self.message(Part::Step(step), trouble)?;
                let error = [("error".into(), Value::from(error))].into_iter().collect();
                return Ok(Some((format!("{}{INVALID}", publication.name), written(&error))));
            }
        };
        let schemas = self.context.schemas.of(step);
        let schema = schemas.and_then(|schemas| schemas.publications.get(place)).and_then(Option::as_ref);
        let ending = if schemas::check(schema, &payload).is_ok() { "" } else { INVALID };
        Ok(Some((format!("{}{ending}", publication.name), written(&payload))))
    }

    fn payload_of(&self, step: usize, publication: &Publication) -> Result<Option<Value>, NoValue> {
        if let Some(condition) = &publication.condition {
            let value = condition.evaluate_condition(&self.names(), &mut self.budget.borrow_mut());
            if !value.map_err(|error| NoValue::of("publishes.if", error))? {
                return Ok(None);
            }
        }
        match (&publication.with, self.state.steps.get(step)) {
            (Some(with), _) => self.value("publishes.with", with).map(Some),
            (None, Some(record)) => Ok(Some(self.result_of(record)?)),
            (None, None) => Ok(None),
        }
    }
}

fn is_published(when: PublishedEnd, state: StepState) -> bool {
    match when {
        PublishedEnd::Completed => state == StepState::Completed,
        PublishedEnd::Failed => state == StepState::Failed,
        PublishedEnd::Dead => state == StepState::Dead,
        PublishedEnd::Expired => state == StepState::Expired,
        PublishedEnd::Skipped => state == StepState::Skipped,
        PublishedEnd::Ended => state.is_ended(),
    }
}
