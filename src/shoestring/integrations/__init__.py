"""Integrations with other libraries. Import a module by its name; it needs the library that it is named after."""
