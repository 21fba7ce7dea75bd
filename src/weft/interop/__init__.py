"""Where weft meets what others have written: Lightning's modules and trainer, Hydra's configs."""
