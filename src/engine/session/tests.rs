//! Tests of the engine in virtual time.
