//! Master files (RFC 1035 section 5): our lexer for logical lines over record scanning by domain, which only this file knows.
