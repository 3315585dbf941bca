//! The engine on every store. Each file is about one part of what it does; `fixture` opens the stores.

#[cfg(test)]
mod fixture;
mod flow;

#[cfg(test)]
mod buffered;
mod bulk;
#[cfg(test)]
mod callers;
mod cancel;
#[cfg(test)]
mod children;
mod cleanup;
#[cfg(test)]
mod dependencies;
#[cfg(test)]
mod ends;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod queues;
#[cfg(test)]
mod runs;
#[cfg(test)]
mod schedules;
#[cfg(test)]
mod seen;
#[cfg(test)]
mod stops;
mod tags;
#[cfg(test)]
mod waits;
