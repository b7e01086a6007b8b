"""Shoestring inside other libraries; each module needs the library it is named after, and is imported by name."""




