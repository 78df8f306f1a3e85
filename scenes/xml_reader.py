"""Reads XML text into a small tree that keeps line numbers. The text may come from strangers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NoReturn

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser, ParseError

from ..jit.errors import SceneError
from .nodes import Location

__all__ = ["Element", "read_xml"]

# Scenes nest less than ten deep; the limit keeps hostile files from exhausting Python's stack.
_MAX_DEPTH = 100


@dataclass(slots=True)
class Element:
    """One XML element: tag, attributes, child elements, place."""

    tag: str
    attributes: dict[str, str]
    location: Location
    children: list[Element] = field(default_factory=list)

    def fail(self, message: str) -> NoReturn:
        """Raise SceneError for a mistake in this element."""
        self.location.fail(message)

    def check_attributes(self, allowed: set[str], required: tuple[str, ...] = ()) -> None:
        """Raise SceneError for an attribute that is not allowed or a required one that is missing."""
        for name in self.attributes:
            if name not in allowed:
                self.fail(f'unexpected attribute "{name}" in element <{self.tag}>; '
                          f"allowed are {', '.join(sorted(allowed)) or 'none'}")
        for name in required:
            if name not in self.attributes:
                self.fail(f'missing required attribute "{name}" in <{self.tag}>')


class _Builder:
    """Receives the events of the parser; `parser` is set once it exists and tells the place of each event."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.parser: Any = None
        self.stack: list[Element] = []
        self.root: Element | None = None

    def here(self) -> Location:
        """Return the place of the current event."""
        return Location(self.source, self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1)

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Open an element."""
        element = Element(tag, dict(attributes), self.here())
        if self.stack:
            self.stack[-1].children.append(element)
        else:
            self.root = element
        self.stack.append(element)
        if len(self.stack) > _MAX_DEPTH:
            element.fail(f"elements are nested more than {_MAX_DEPTH} deep")

    def end(self, tag: str) -> None:
        """Close an element."""
        self.stack.pop()

    def data(self, text: str) -> None:
        """Refuse text between elements, which scene files have no use for."""
        if text.strip() and self.stack:
            shown = " ".join(text.split())[:40]
            self.here().fail(f'unexpected text "{shown}" inside <{self.stack[-1].tag}>')

    def close(self) -> Element | None:
        """Return the root element."""
        return self.root


def read_xml(text: str | bytes, source: str) -> Element:
    """Return the root element of XML text; `source` names the file in messages.

    Raises SceneError for malformed text. Entity declarations are refused: they can blow up memory or read files.
    """
    builder = _Builder(source)
    parser = DefusedXMLParser(target=builder)
    builder.parser = parser.parser
    # Buffered text would be reported where it ends, not where it begins.
    builder.parser.buffer_text = False
    try:
        parser.feed(text)
        root = parser.close()
    except ParseError as error:
        line, column = error.position
        reason = str(error).partition(": line")[0]
        Location(source, line, column + 1).fail(f"XML parsing failed: {reason}")
    except DefusedXmlException:
        builder.here().fail("entity declarations and external references are not allowed in scene files")
    except SceneError:
        raise
    except (LookupError, ValueError) as error:  # an unknown encoding
        Location(source).fail(f"XML parsing failed: {error}")
    if not isinstance(root, Element):
        Location(source, 1, 1).fail("XML parsing failed: no element found")
    return root
