"""Files that go into an exported folder as they are. kbtui copies their text and never imports them."""
