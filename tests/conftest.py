import torch

# Graphs in the tests are small: a second thread only waits for the first.
torch.set_num_threads(1)
