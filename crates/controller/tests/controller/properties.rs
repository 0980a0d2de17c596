//! What holds whatever comes.
