"""What a run leaves for others: a folder that stands alone, and one HTML page. Pure builders; commands write."""
