"""The report: one HTML page with its style, drawings and the little script inline. Pure."""
