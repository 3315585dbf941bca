//! Compares a provider's schedules with those of the store.

use std::collections::BTreeSet;

use onward_store::{Name, NewSchedule, ScheduleRecord};

/// The changes that bring the store into agreement with a provider.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Changes {
    /// The schedules to set: new ones and changed ones.
    pub(crate) set: Vec<NewSchedule>,
    /// The schedules to delete: those of the provider that it no longer has.
    pub(crate) delete: Vec<Name>,
}

/// Compares a provider's schedules with those of the store. Schedules of other providers are left
/// alone.
pub(crate) fn reconcile(provider: &Name, wanted: Vec<NewSchedule>, existing: &[ScheduleRecord]) -> Changes {
    let wanted = wanted.into_iter().map(|schedule| NewSchedule { provider: Some(provider.clone()), ..schedule });
    let wanted: Vec<NewSchedule> = wanted.collect();
    let names: BTreeSet<&Name> = wanted.iter().map(|schedule| &schedule.name).collect();
    let own = existing.iter().map(|record| &record.schedule).filter(|it| it.provider.as_ref() == Some(provider));
    let delete = own.filter(|it| !names.contains(&it.name)).map(|it| it.name.clone()).collect();
    let is_so = |schedule: &NewSchedule| existing.iter().any(|record| record.schedule == *schedule);
    Changes { set: wanted.iter().filter(|it| !is_so(it)).cloned().collect(), delete }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use onward_store::{NewTask, Recurrence, Timestamp};

    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn schedule(called: &str, provider: Option<&str>) -> NewSchedule {
        let every = Recurrence::Every(Duration::from_secs(60));
        NewSchedule {
            provider: provider.map(name),
            ..NewSchedule::new(name(called), every, NewTask::new("k").unwrap())
        }
    }

    fn record(schedule: NewSchedule) -> ScheduleRecord {
        ScheduleRecord {
            schedule,
            revision: 1,
            paused: false,
            next: None,
            pending_at: None,
            last: None,
            error: None,
            fired: 0,
            skipped: 0,
            missed: 0,
            failed: 0,
            created_at: Timestamp::MIN,
        }
    }

    #[test]
    fn what_is_new_is_set_and_what_is_gone_is_deleted_and_the_rest_left() {
        let existing = [record(schedule("gone", Some("p"))), record(schedule("stays", Some("p")))];
        let changes = reconcile(&name("p"), vec![schedule("stays", None), schedule("new", None)], &existing);
        assert_eq!(changes, Changes { set: vec![schedule("new", Some("p"))], delete: vec![name("gone")] });
    }

    #[test]
    fn schedules_of_others_are_left_alone() {
        let existing = [record(schedule("by-hand", None)), record(schedule("other", Some("q")))];
        assert_eq!(reconcile(&name("p"), vec![], &existing), Changes::default());
    }
}
