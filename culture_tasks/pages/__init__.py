"""Parts that pages and pictures share: markup, content security policy, fonts and looks."""
