//! (sign to come)
