"""Where textmill meets what others wrote: Lightning's modules and trainer, Hydra's configs."""
