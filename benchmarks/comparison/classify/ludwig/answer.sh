ludwig predict --dataset new.csv --model_path results/experiment_run/model --output_directory answers
