//! Tests of the test kit itself. They are a program of their own, because the library is large and
//! would be compiled a second time for tests inside it.

#[cfg(test)]
mod case_lists;
#[cfg(test)]
mod faulty_store;
#[cfg(test)]
mod model_based;
