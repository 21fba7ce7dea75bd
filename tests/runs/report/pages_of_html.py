"""An HTML page as a browser takes it: its elements, checked against what a report may hold."""

from html.parser import HTMLParser

EMPTY = {"meta"}
WORDS = """
html head meta title style script body main header footer h1 h2 h3 p span section dl div dt dd ul ol
li table thead tbody tr th td details summary figure figcaption b svg rect button data mark small
"""
ALLOWED = {*WORDS.split()}
WORDS = """
lang charset http-equiv content name class viewbox preserveaspectratio role aria-label aria-hidden
tabindex scope width height dir id type hidden value data-pairs data-kind data-x data-y data-mark
data-share data-zero data-decades data-diagonal data-low data-high
"""
ATTRIBUTES = {*WORDS.split()}


class Page(HTMLParser):
    """Reads a page; an element, an attribute or an order that is not allowed is an assertion."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open = []
        self.texts = []
        self.assets = []  # of scripts and styles
        self.counts = {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert tag in ALLOWED, tag
        self.counts[tag] = self.counts.get(tag, 0) + 1
        for name, value in attrs:
            assert name in ATTRIBUTES, (tag, name)
            assert "javascript:" not in (value or "")
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag in EMPTY
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style"):
            self.assets.append(data)
        else:
            self.texts.append(data)

    def handle_comment(self, data):
        raise AssertionError(f"a comment: {data}")

    @property
    def text(self):
        return "\n".join(self.texts)


HOSTILE = [
    "<script>document.title='owned'</script>",
    "</title><script>document.title='owned'</script>",
    "</style><script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    '" onmouseover="document.title=\'owned\'" x="',
    "' autofocus onfocus='document.title=1' '",
    "<svg onload=document.title='owned'>",
    "</svg></figure><iframe src=http://example.org></iframe>",
    "<!-- comment",
    "]]><b>&lt;b&gt;&#60;script&#62;",
    "a\x00<\x00script>b\x1b[31m\x7f\x9b",
    "\u202ereversed\u202c \ufeff\u2066x",
    "\ud800 a lone surrogate",
    "<" * 5_000,
    "wide " * 20_000,
    "x" * 100_000,
    "`${document.title='owned'}`",
    "{{7*7}} {% raw %}",
]
