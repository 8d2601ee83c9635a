"""What lies on the disk: names, the catalogue, headers of weights, the cache, devices and memory they need."""
